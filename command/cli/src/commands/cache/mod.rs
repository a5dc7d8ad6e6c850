//! `seawall cache`: what of a database is in the block cache before anything else, what never is, and what is brought there
//! before it is asked for.
//!
//! Policies are the daemon's: it keeps them, and applies them to files that exist and that come. A table is resolved to its
//! files here, by asking its database.

mod again;
mod asking;
mod files;
mod follow;
mod names;
mod postgres;
mod prewarm;
mod server;

use anyhow::Result;
use seawall_daemon::cache::{
    Asked, Choice, Covers, FilesStatus, Listed, PolicyStatus, Resized, Rule, Wanted,
};
use seawall_wire::message::Kind;

use crate::{show, size};
use again::ask_again;
use asking::{Asking, Choose, Which, ask};
use names::{Resolver, What};

/// Choose which files of a database are in the block cache
#[derive(clap::Args)]
pub struct Cache {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show the policies, and what each of them covers
    List(Which),
    /// Let blocks enter at once, and do not let others drive them out: up to three quarters of the cache
    Keep(Choose),
    /// Let blocks compete for their places, as blocks of files without a policy do
    Default(Choose),
    /// Never cache these
    None(Choose),
    /// Ask the databases again which files their tables have: a rewrite (VACUUM FULL, REINDEX, TRUNCATE) makes new ones
    Refresh(Again),
    /// Resize the cache while processes use it: up to the value of --cache-max, in sixteenths of that value
    Resize(Resize),
    /// Read files or tables into the cache before they are asked for, as far as there is room
    Prewarm(Choose),
}

#[derive(clap::Args)]
struct Resize {
    /// The size
    #[arg(value_parser = size::parse)]
    size: u64,
    #[command(flatten)]
    which: Which,
}

#[derive(clap::Args)]
struct Again {
    /// Keep running until the daemon ends: ask again when a table's file is gone or was emptied, as a rewrite does, and
    /// every ten minutes for new files of a table
    #[arg(long)]
    follow: bool,
    /// Wait for a daemon or a server that is not there yet, and keep running when the daemon ends, as a service does
    #[arg(long, requires = "follow")]
    wait: bool,
    #[command(flatten)]
    asking: Asking,
    #[command(flatten)]
    which: Which,
}

/// Does what was asked for.
pub fn cache(cache: &Cache) -> Result<()> {
    match &cache.command {
        Command::List(which) => list(which),
        Command::Keep(choose) => set(Choice::Keep, choose),
        Command::Default(choose) => set(Choice::Default, choose),
        Command::None(choose) => set(Choice::None, choose),
        Command::Refresh(again) => refresh(again),
        Command::Resize(how) => resize(how),
        Command::Prewarm(choose) => prewarm::prewarm(choose),
    }
}

fn list(which: &Which) -> Result<()> {
    let (_, listed) = ask(which)?;
    tell(&listed, which.json)
}

/// A cache that shrinks keeps what is in the places that are left; one that grows keeps everything.
fn resize(how: &Resize) -> Result<()> {
    let (control, listed) = ask(&how.which)?;
    let wanted = seawall_daemon::cache::Resize { size: how.size };
    let resized: Resized = control.request(Kind::Cache, &Asked::Resize(wanted))?;
    if how.which.json {
        return show::json(&resized);
    }
    let used = resized.blocks_used * u64::from(listed.block_bytes);
    let [size, before, used] = [resized.size, resized.before, used].map(size::human);
    outln!("block cache: {size}, was {before}; {used} in use");
    Ok(())
}

fn set(policy: Choice, choose: &Choose) -> Result<()> {
    let (control, listed) = ask(&choose.which)?;
    let resolver = Resolver { psql: &choose.asking.psql, directories: &listed.directories };
    let mut wanted = Wanted { rules: Vec::new(), tables: Vec::new() };
    for what in &choose.what {
        let what = What::of(what);
        let found = resolver.resolve(&what)?;
        let table = what.table().map(str::to_owned);
        let rule = |(path, covers)| Rule { policy, path, covers, table: table.clone() };
        wanted.rules.extend(found.into_iter().map(rule));
        wanted.tables.extend(table.clone());
    }
    let listed: Listed = control.request(Kind::Cache, &Asked::Set(wanted))?;
    if policy == Choice::Keep {
        warn_of_too_much(&listed);
    }
    tell(&listed, choose.which.json)
}

fn refresh(again: &Again) -> Result<()> {
    if again.follow {
        return follow::follow(&again.which, &again.asking.psql, again.wait);
    }
    tell(&ask_again(&again.which, &again.asking.psql)?, again.which.json)
}

/// Files to keep that find no room compete as all others do. We say so when the policy is set, for people easily
/// overlook it.
fn warn_of_too_much(listed: &Listed) {
    let kept = listed.policies.iter().map(|policy| &policy.rule).filter(|rule| rule.policy == Choice::Keep);
    let wanted: u64 = kept.map(files::bytes).sum();
    let room = listed.kept_max * u64::from(listed.block_bytes);
    if wanted > room {
        errln!(
            "seawall: the files to keep have {}, and the cache keeps {} at most: the rest competes for room \
             like other blocks",
            size::human(wanted),
            size::human(room)
        );
    }
}

fn tell(listed: &Listed, as_json: bool) -> Result<()> {
    if as_json {
        return show::json(listed);
    }
    let row = |policy: &str, what: String, files: &FilesStatus| {
        let bytes = |blocks: u64| size::human(blocks * u64::from(listed.block_bytes));
        vec![what, policy.into(), files.files.to_string(), bytes(files.blocks), bytes(files.kept)]
    };
    let mut rows: Vec<_> =
        listed.policies.iter().map(|p| row(p.rule.policy.name(), named(p), &p.files)).collect();
    rows.push(row(Choice::Default.name(), "everything else".into(), &listed.others));
    outln!(
        "block cache: {}, on {}\n",
        size::human(listed.blocks * u64::from(listed.block_bytes)),
        listed.medium
    );
    show::table(&["what", "policy", "open files", "in the cache", "kept"], &rows);
    if listed.policies.iter().any(|policy| !policy.exists && policy.rule.table.is_some()) {
        outln!("\ntables whose files are gone were rewritten: run `seawall cache refresh`");
    }
    Ok(())
}

fn named(policy: &PolicyStatus) -> String {
    let rule = &policy.rule;
    let mut name = rule.path.display().to_string();
    if rule.covers == Covers::Tree && rule.path.is_dir() {
        name.push('/');
    }
    if let Some(table) = &rule.table {
        name = format!("{table}: {name}");
    }
    if !policy.exists {
        name.push_str(" (gone)");
    }
    name
}
