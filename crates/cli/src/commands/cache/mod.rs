//! `seawall cache`: what of a database is in the block cache before anything else, what never is, and what is brought there
//! before it is asked for.
//!
//! Policies are the daemon's: it keeps them, and applies them to files that exist and that come. A table is resolved to its
//! files here, by asking its database.

mod files;
mod follow;
mod names;
mod postgres;
mod prewarm;
mod server;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use seawall_daemon::cache::{
    Asked, Choice, Covers, FilesStatus, Listed, PolicyStatus, Resized, Rule, Wanted,
};
use seawall_daemon::control::Control;
use seawall_wire::message::Kind;

use super::ask::connect;
use crate::daemons::Named;
use crate::{Ask, show, size, user};
use names::{Resolver, What};

/// What of a database is in the block cache
#[derive(clap::Args)]
pub struct Cache {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show the policies, and what there is of each
    List(Which),
    /// Blocks enter at once and are not driven out by others: up to three quarters of the cache
    Keep(Choose),
    /// Blocks compete for their places, as those of all files do for which nothing was said
    Default(Choose),
    /// Never cached
    None(Choose),
    /// Ask the databases again which files their tables have: a rewrite (VACUUM FULL, REINDEX, TRUNCATE) makes new ones
    Refresh(Again),
    /// Give the cache another size while its processes go on: up to what --cache-max said, in sixteenths of that
    Resize(Resize),
    /// Bring files or tables into the cache before they are asked for, as far as there is room
    Prewarm(Choose),
}

/// Which cache is meant.
#[derive(clap::Args)]
struct Which {
    /// The pool; without it your default pool
    #[arg(long, conflicts_with = "service")]
    pool: Option<PathBuf>,
    /// An attached service, whose pool is meant
    #[arg(long)]
    service: Option<String>,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Which {
    fn pool_asked_for(&self) -> Ask {
        let named = Named { what: self.service.clone().map(Into::into), pool: self.pool.clone() };
        Ask { named, json: self.json }
    }
}

/// How PostgreSQL is asked.
#[derive(clap::Args)]
struct Asking {
    /// How to call psql, for example "sudo -u postgres psql". Without it root calls psql as the directory's owner
    #[arg(long, value_name = "COMMAND", default_value = postgres::PSQL)]
    psql: String,
}

#[derive(clap::Args)]
struct Choose {
    /// Files, directories with all that comes to be in them, or tables and indexes: DB.SCHEMA.TABLE of PostgreSQL, DB.TABLE
    /// of MariaDB
    #[arg(required = true, value_name = "PATH|TABLE")]
    what: Vec<String>,
    #[command(flatten)]
    asking: Asking,
    #[command(flatten)]
    which: Which,
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
    /// Go on, until the daemon ends: ask again when a table's file is gone or was emptied, which a rewrite does, and every ten
    /// minutes for what else a table has come to have
    #[arg(long)]
    follow: bool,
    /// Wait for a daemon or a server that is not there yet, and go on when the daemon ends: as a service does
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

/// The daemon, and what holds now.
fn ask(which: &Which) -> Result<(Control, Listed)> {
    let (pool, control) = connect(&which.pool_asked_for())?;
    let Some(control) = control else {
        bail!(nobody_answers(&pool));
    };
    let listed = control.request(Kind::Cache, &Asked::List)?;
    Ok((control, listed))
}

/// Why there is nobody to ask.
fn nobody_answers(pool: &Path) -> String {
    let (me, pool_name) = (rustix::process::geteuid().as_raw(), pool.display());
    match std::fs::metadata(pool).map(|stat| stat.uid()) {
        Ok(owner) if me != 0 && owner != me => format!(
            "the pool {pool_name} belongs to {0}, and its daemon answers that user and root alone: `sudo -u {0} seawall cache …`",
            user::name(owner)
        ),
        _ => format!(
            "no daemon serves {pool_name}, and the block cache is the daemon's: start the database first, with `seawall run \
             --cache SIZE` or, where it is attached, its service"
        ),
    }
}

fn list(which: &Which) -> Result<()> {
    let (_, listed) = ask(which)?;
    tell(&listed, which.json)
}

/// What stays is what is there in the places that are left; a size that grows keeps everything.
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

/// Tables that were rewritten have other files; those that are gone have none, and no policy any more. What holds then.
fn ask_again(which: &Which, psql: &str) -> Result<Listed> {
    let (control, listed) = ask(which)?;
    let resolver = Resolver { psql, directories: &listed.directories };
    let mut tables: Vec<(String, Choice)> = Vec::new();
    for rule in listed.policies.iter().map(|policy| &policy.rule) {
        let table = rule.table.clone().map(|table| (table, rule.policy));
        tables.extend(table.filter(|table| !tables.contains(table)));
    }
    if tables.is_empty() {
        return Ok(listed);
    }
    let mut found: Vec<Vec<Rule>> = Vec::new();
    for (table, policy) in &tables {
        let rule = |(path, covers)| Rule { policy: *policy, path, covers, table: Some(table.clone()) };
        match resolver.find(&What::of(table))? {
            Some(files) => found.push(files.into_iter().map(rule).collect()),
            None => errln!("seawall: there is no {table} any more: its policy is forgotten"),
        }
    }
    // The last one counts: what was said of an index, before what was said of its table.
    found.sort_by_key(|rules| std::cmp::Reverse(rules.len()));
    let rules = found.into_iter().flatten().collect();
    let wanted = Wanted { rules, tables: tables.into_iter().map(|(table, _)| table).collect() };
    Ok(control.request(Kind::Cache, &Asked::Set(wanted))?)
}

/// What is to be kept and has no room competes as everything does: said when it is set, for it is easily overlooked.
fn warn_of_too_much(listed: &Listed) {
    let kept = listed.policies.iter().map(|policy| &policy.rule).filter(|rule| rule.policy == Choice::Keep);
    let wanted: u64 = kept.map(files::bytes).sum();
    let room = listed.kept_max * u64::from(listed.block_bytes);
    if wanted > room {
        errln!(
            "seawall: what is to be kept has {}, and the cache keeps {} at most: the rest competes as other blocks do",
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
        outln!("\ntables with files that are gone were rewritten: `seawall cache refresh`");
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
