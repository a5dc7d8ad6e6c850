//! `seawall run`: as easy as `eatmydata COMMAND`, but durable.
//!
//! ```text
//! become the user ─ find pool ─ find program ─ find the database ─ find the preload
//!   ─ start or join the daemon (it recovers first) ─ register the directories
//!   ─ start the command, look whether the preload is in it ─ watch over both ─ close if nobody else is left
//! ```
//!
//! Every check that can fail comes before the command starts. After that Seawall's troubles cost speed only,
//! and `run` reports them on stderr.

mod behind;
pub mod database;
mod elf;
mod init;
pub mod join;
pub mod lockfile;
mod many;
pub mod preload;
mod program;
mod strays;
mod supervise;
mod unguarded;
pub mod witness;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use seawall_daemon::AddRoot;
use seawall_daemon::cache::CacheOptions;
use seawall_daemon::status::Status;
use seawall_media::Medium;
use seawall_wire::message::Kind;
use seawall_wire::shm::{Policy, Preset};

use crate::recovery::Recovery;
use crate::{cache, pool, size, time, user};
use program::Program;

/// Seawall could not start the command.
const FAILED: u8 = 125;

/// Run a command with Seawall
#[derive(clap::Args)]
pub struct Run {
    #[command(flatten)]
    wanted: pool::Wanted,
    #[command(flatten)]
    cache: cache::WantedCache,
    /// The kind of database; found by COMMAND's name if not given
    #[arg(long, value_parser = database::presets())]
    preset: Option<String>,
    /// tail: the log that commits wait for. atomic: every data file, so that no page can tear
    #[arg(long, default_value = "tail", value_parser = ["tail", "atomic"])]
    policy: String,
    /// The database's directory (PGDATA, a directory of SQLite databases, ...); found in COMMAND if not given
    #[arg(long)]
    data: Vec<PathBuf>,
    /// Run everything as this user (needs root)
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Show only important messages
    #[arg(long, short)]
    quiet: bool,
    /// Keep the daemon running when the last client has gone; `seawall stop` ends it
    #[arg(long)]
    keep: bool,
    /// Do not recover the log when this machine starts after a crash, only when the database is started with Seawall
    #[arg(long)]
    no_boot: bool,
    /// Accept that after a power cut, before `seawall recover` has run, nothing keeps a program from using old files:
    /// for a directory of the preset any on a machine that recovers no logs when it starts
    #[arg(long)]
    unguarded: bool,
    /// Take checkpoints often enough that after a crash the time from the start of the server to its first transaction
    /// is no longer than this, for example 1s (PostgreSQL, MariaDB)
    #[arg(long, value_name = "TIME", value_parser = time::goal)]
    recovery: Option<Duration>,
    /// Reap orphans and forward every signal, as the first process of a container does anyway
    #[arg(long)]
    init: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command; its exit code becomes ours.
pub fn run(how: &Run) -> ExitCode {
    prepare(how).and_then(supervise::Session::run).unwrap_or_else(|e| {
        errln!("seawall: {e:#}");
        ExitCode::from(e.downcast_ref::<program::NotRunnable>().map_or(FAILED, |e| e.code))
    })
}

fn prepare(how: &Run) -> Result<supervise::Session> {
    // Made while we have the rights for it.
    let watch = how.user.as_ref().and_then(|_| seawall_daemon::privileged_watch());
    // Everything is looked for as that user, who may not be allowed to make a log beside the data: root does that.
    let user = how.user.as_deref().map(user::other).transpose()?.flatten();
    let standing_in = user.as_ref().map(user::StandIn::for_user).transpose()?;
    let program = Program::find(&how.command)?;
    let policy = Policy::from_name(&how.policy).unwrap_or_default();
    let found = database::find(how.preset.as_deref(), policy, &how.data, &program, &how.command[1..])?;
    let becomes = found.becomes();
    let recovery = recovery_of(how, &found)?;
    let mut arguments = how.command[1..].to_vec();
    if let Some(recovery) = &recovery {
        arguments = recovery.with_settings(&arguments, (&found.inner.name, &found.inner.arguments))?;
    }
    let watch = watch.or_else(|| becomes.and_then(|_| seawall_daemon::privileged_watch()));
    let mut roots = found.roots;
    recovery.iter().for_each(|recovery| recovery.note(&mut roots));
    let (preload, pool) = preload_and_pool(how, &roots, becomes)?;
    drop(standing_in);
    let environment = user.map(user::become_user).transpose()?.unwrap_or_default();
    let init = init::Init::begin(how.init)?;
    if !found.inner.is_behind {
        program.warn();
    }
    let link = joined(how, pool, roots, watch)?;
    let mut command = Command::new(&program.path);
    command.args(arguments);
    environment.apply(&mut command);
    command.env("LD_PRELOAD", preload::variable(&preload)).env("SEAWALL_SOCKET", link.control().path());
    command.env("ASAN_OPTIONS", preload::asan_options(std::env::var_os("ASAN_OPTIONS").as_deref()));
    Ok(supervise::Session { command, program, link, init, recovery, quiet: how.quiet })
}

/// The library and the pool. They are looked for, and the pool is made, as the user whom the database becomes: that user
/// will be served.
fn preload_and_pool(how: &Run, roots: &[AddRoot], becomes: Option<u32>) -> Result<(PathBuf, PathBuf)> {
    how.wanted.has_files(many::count(roots));
    let data = roots.first().map(|root| root.data.as_path()).context("no directory to manage")?;
    let _standing_in = becomes.map(user::StandIn::of).transpose()?;
    let preload = preload::find()?;
    let pool = pool::for_run(&how.wanted, data)?;
    check_owner(&pool)?;
    say_what_it_survives(&pool, how.quiet)?;
    unguarded::check(&pool, roots, !how.no_boot, how.unguarded)?;
    Ok((preload, pool))
}

/// A place at the pool's daemon.
fn joined(how: &Run, pool: PathBuf, roots: Vec<AddRoot>, watch: Option<OwnedFd>) -> Result<join::Link> {
    lockfile::step_over(&roots);
    let cache = how.cache.options();
    let link = join::Link::new(
        pool,
        roots,
        join::How { keep: how.keep, boot: !how.no_boot, watch, cache: cache.clone() },
    )?;
    say_what_cache(&link, cache.as_ref());
    many::warn(&link);
    Ok(link)
}

/// How long a recovery may take, if the user set a limit.
fn recovery_of(how: &Run, found: &database::Found) -> Result<Option<Recovery>> {
    let Some(goal) = how.recovery else { return Ok(None) };
    let data = found.roots.first().map(|root| root.data.as_path()).context("no directory to manage")?;
    let recovery = Recovery::of(found.preset, Some(data), goal)?;
    // InnoDB's checkpoints are the same under both policies.
    let makes_images = found.preset == Preset::Postgres && how.policy == Policy::Tail.name();
    if makes_images && !how.quiet {
        errln!(
            "seawall: --recovery under --policy tail: every checkpoint makes page images again and waits for the disk. Under \
             --policy atomic, with the database's page copies off (`seawall tune`), it costs next to nothing"
        );
    }
    Ok(Some(recovery))
}

/// A daemon that was there already has the cache it was started with.
pub fn say_what_cache(link: &join::Link, wanted: Option<&CacheOptions>) {
    let Some(wanted) = wanted else { return };
    let Ok(status) = link.control().request::<Status>(Kind::Status, &()) else { return };
    match status.cache {
        None => errln!(
            "seawall: WITHOUT the block cache: the pool's daemon was started without it, and processes use it. Stop them \
             (`seawall status` shows them), then start again"
        ),
        Some(found) if !wanted.is_as_large(found.size, found.size_max) => errln!(
            "seawall: the pool's daemon already has a block cache of {}; this run uses that one",
            size::human(found.size)
        ),
        Some(_) => {}
    }
}

/// A daemon of another user could not be talked to, and would not be allowed to touch the files.
fn check_owner(pool: &Path) -> Result<()> {
    let owner = std::fs::metadata(pool).with_context(|| pool.display().to_string())?.uid();
    let me = nix::unistd::geteuid().as_raw();
    if owner != me {
        let owner = user::name(owner);
        bail!("the pool {} belongs to {owner}: use --user {owner}, or another pool", pool.display());
    }
    Ok(())
}

/// One line that cannot be missed, if the medium does not survive a crash of the machine, or does so only if the
/// device keeps its word.
pub fn say_what_it_survives(pool: &Path, quiet: bool) -> Result<()> {
    let (medium, _) = pool::medium(pool)?;
    match medium {
        Medium::Pmem => return Ok(()),
        Medium::Block if quiet => return Ok(()),
        Medium::Replicated if quiet => return Ok(()),
        Medium::Block | Medium::Replicated => {
            errln!("seawall: the log {} is on {}", pool.display(), medium.label());
            return Ok(());
        }
        Medium::Emulated => {}
    }
    let (on, off) = if std::io::stderr().is_terminal() { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    errln!(
        "{on}SEAWALL EMULATED: commits are kept in RAM. They survive a crash of the database, NOT a crash or \
         power cut of this machine.{off}"
    );
    Ok(())
}
