//! `seawall tier`: memory of several kinds, what the kernel moves between them, where a server's memory is, and how much of
//! it is in use.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use seawall_setup::tier::nodes::Nodes;
use seawall_setup::tier::policy::{self, Policy};
use seawall_setup::tier::{self, hot, placed};
use seawall_setup::{Host, This, plan};

use super::planned::{self, Go};
use crate::{show, size};

/// Show memory of several kinds (DRAM, CXL, persistent memory as memory), use it, and show how much of a server's
/// memory is in use
///
/// Without a sub-command: the nodes, and what the kernel moves between them.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Tier {
    #[command(subcommand)]
    what: Option<What>,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum What {
    /// Measure how much of a server's memory is touched within 1, 2, 5 … seconds: how much memory would be enough
    Hot(Hot),
    /// Show on which nodes a server's memory is
    Where(Ask),
    /// Have the kernel move pages between kinds of memory: prints the plan, and carries it out with --yes
    Setup(Setup),
    /// Undo what setup did
    Undo(Setup),
    /// Start a server on the right nodes
    Run(Run),
}

#[derive(Args)]
struct Hot {
    /// The server: its data directory, or a process
    server: String,
    /// How long to measure: the longest window
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Ask {
    /// The server: its data directory, or a process
    server: String,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Setup {
    #[command(flatten)]
    go: Go,
}

#[derive(Args)]
struct Run {
    /// Where its memory should be
    #[arg(long, value_enum, default_value = "tiered")]
    policy: Where,
    /// The command, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Where {
    /// Fast memory first; pages that are not in use go to slower memory, and come back when used (the kernel's part:
    /// setup)
    Tiered,
    /// Fast memory only
    Fast,
    /// Slower memory as long as there is any
    Large,
    /// Pages in turn over all nodes
    Spread,
}

/// Shows, measures, sets up, starts.
///
/// # Errors
/// What is asked for is not possible on this machine.
pub fn tier(how: &Tier) -> Result<ExitCode> {
    let host = This::default();
    match &how.what {
        None => nodes(&host, how.json)?,
        Some(What::Hot(hot)) => measured(hot)?,
        Some(What::Where(ask)) => place(ask)?,
        Some(What::Setup(setup)) => planned::go(&host, tier::plan(&host)?, &setup.go)?,
        Some(What::Undo(undo)) => planned::take_back_named(&host, "tier", &undo.go, plan::Of::Tier)?,
        Some(What::Run(run)) => return Err(started(&host, run)?),
    }
    Ok(ExitCode::SUCCESS)
}

fn nodes(host: &dyn Host, json: bool) -> Result<()> {
    let nodes = Nodes::read(host);
    if json {
        return show::json(&nodes);
    }
    let none = || "–".to_owned();
    let rows: Vec<Vec<String>> = nodes
        .nodes
        .iter()
        .map(|node| {
            vec![
                format!("node {}", node.number),
                size::human(node.bytes),
                size::human(node.free),
                node.tier.map_or_else(none, |tier| tier.to_string()),
                node.distance.map_or_else(none, |distance| distance.to_string()),
                if node.has_cpus { "yes" } else { "no" }.into(),
                node.made_of.clone(),
            ]
        })
        .collect();
    show::table(&["memory", "bytes", "free", "tier", "distance", "processors", "made of"], &rows);
    outln!("pages in use go to faster memory (numa_balancing): {}", yes(nodes.promotes));
    match nodes.demotes {
        Some(demotes) => outln!("unused pages go to slower memory (demotion_enabled): {}", yes(demotes)),
        None => outln!("this kernel cannot move unused pages to slower memory"),
    }
    if let Some((promoted, demoted)) = policy::moved(host.root()) {
        outln!(
            "pages moved since the start of the machine: {promoted} to faster memory, {demoted} to slower memory"
        );
    }
    match nodes.slow().is_empty() {
        true => {
            outln!("All memory is of one kind. seawall tier hot DIRECTORY shows how much of it a server uses")
        }
        false if !nodes.promotes || nodes.demotes != Some(true) => {
            outln!("seawall tier setup makes the kernel move pages")
        }
        false => {}
    }
    Ok(())
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

fn measured(how: &Hot) -> Result<()> {
    let hot = hot::measure(&how.server, how.seconds, |window| {
        if !how.json {
            errln!("{:.0} s: {} touched", window.seconds, range(window.least, window.most));
        }
    })?;
    if how.json {
        return show::json(&Measured { sizes: hot.sizes(), hot: &hot });
    }
    outln!("{} processes, {} in memory", hot.processes, size::human(hot.resident));
    let rows: Vec<Vec<String>> = hot
        .windows
        .iter()
        .map(|window| {
            let share = |bytes: u64| 100.0 * bytes as f64 / hot.resident as f64;
            vec![
                format!("{:.0} s", window.seconds),
                range(window.least, window.most),
                format!("{:.0}–{:.0} %", share(window.least), share(window.most)),
            ]
        })
        .collect();
    show::table(&["touched within", "bytes", "of what is in memory"], &rows);
    for one in hot.sizes() {
        outln!(
            "with {} of fast memory (what was touched within {:.0} s) {}/s would come from the next tier",
            size::human(one.bytes),
            one.seconds,
            size::human(one.fetched as u64)
        );
    }
    if hot.unseen > 0 {
        outln!(
            "{} in reserved huge pages: Seawall cannot see whether they are touched",
            size::human(hot.unseen)
        );
    }
    Ok(())
}

#[derive(serde::Serialize)]
struct Measured<'h> {
    #[serde(flatten)]
    hot: &'h hot::Hot,
    sizes: Vec<hot::Size>,
}

fn range(least: u64, most: u64) -> String {
    let (least, most) = (size::human(least), size::human(most));
    if least == most { least } else { format!("{least} to {most}") }
}

fn place(ask: &Ask) -> Result<()> {
    let found = placed::of(&ask.server)?;
    if ask.json {
        return show::json(&found);
    }
    for (what, nodes) in [("shared", &found.shared), ("private", &found.private)] {
        outln!("{what}: {}", by_node(nodes));
    }
    Ok(())
}

fn by_node(nodes: &BTreeMap<u32, u64>) -> String {
    let all = nodes.values().sum::<u64>().max(1);
    let one = |(node, bytes): (&u32, &u64)| {
        format!("node {node} {} ({:.0} %)", size::human(*bytes), 100.0 * *bytes as f64 / all as f64)
    };
    let all: Vec<String> = nodes.iter().map(one).collect();
    if all.is_empty() { "nothing".into() } else { all.join(", ") }
}

/// The command takes our place: it returns only if it cannot be started.
fn started(host: &dyn Host, run: &Run) -> Result<anyhow::Error> {
    let policy = match run.policy {
        Where::Tiered => Policy::Tiered,
        Where::Fast => Policy::Fast,
        Where::Large => Policy::Large,
        Where::Spread => Policy::Spread,
    };
    let prefix = policy::prefix(&Nodes::read(host), policy)?;
    if let Some(program) = prefix.first().filter(|program| !host.has_program(program)) {
        bail!(
            "{program} is not installed: apt-get install numactl, or the package that has it on this system"
        );
    }
    let words: Vec<OsString> =
        prefix.into_iter().map(OsString::from).chain(run.command.iter().cloned()).collect();
    let (program, arguments) = words.split_first().context("no command")?;
    let failed = Command::new(program).args(arguments).exec();
    Ok(anyhow::Error::from(failed).context(program.to_string_lossy().into_owned()))
}
