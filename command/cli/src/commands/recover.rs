//! `seawall recover`: brings the files up to date after a crash, and removes the guards.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use seawall_core::pool::PoolError;
use seawall_daemon::control::{Control, Stop, Stopped};
use seawall_daemon::guard::{self, Claim};
use seawall_daemon::{DaemonError, Offline, Recovery, kept, recover as recover_pool};
use seawall_wire::message::Kind;
use seawall_wire::shm::Preset;
use serde_json::json;

use super::{ask, recover_all};
use crate::{pool, show, size, user};

/// How long a daemon that was killed takes to be gone, at most.
const DYING: Duration = Duration::from_secs(2);
/// Between two looks whether it is.
const LOOK: Duration = Duration::from_millis(20);

/// Bring the files up to date after a crash and remove the guards
#[derive(clap::Args)]
pub struct Recover {
    /// The pool; without it your default pool
    #[arg(long)]
    pool: Option<PathBuf>,
    /// Replay the log even if this machine did not restart since it was written
    #[arg(long)]
    replay: bool,
    /// Give up the records of files that are gone or were changed by others, instead of refusing
    #[arg(long)]
    accept_loss: bool,
    /// Remove the guards in this database's directory: the same as `seawall guard --lower`
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["replay", "accept_loss"])]
    abandon: Option<PathBuf>,
    /// Recover every pool of this machine that a crash left with records, each as its owner; one line each.
    /// seawall-recover.service does this as root at the start of the machine. It skips pools that a daemon serves, and
    /// logs that other hosts keep, for which there is no network yet: these are recovered by whatever starts their
    /// database
    #[arg(long, conflicts_with_all = ["pool", "replay", "accept_loss", "abandon"])]
    all: bool,
    /// Stop recovering this pool when the machine starts, for example because it was removed
    #[arg(long, value_name = "POOL", conflicts_with_all = ["all", "pool", "replay", "accept_loss", "abandon", "json"])]
    forget: Option<PathBuf>,
    /// For --all: skip the pool if a daemon serves it, or if it belongs neither to this user nor to root
    #[arg(long, hide = true, value_name = "UID")]
    registered_by: Option<u32>,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Recovers.
pub fn recover(how: &Recover) -> Result<()> {
    if let Some(dir) = &how.abandon {
        return super::guard::abandon(dir, how.json);
    }
    if let Some(pool) = &how.forget {
        return recover_all::forget(pool);
    }
    if how.all {
        return recover_all::recover_all(how.json);
    }
    let pool = pool::existing(how.pool.as_deref())?;
    if let Some(uid) = how.registered_by {
        check_registered(&pool, uid)?;
    }
    user::become_owner(&pool)?;
    if how.registered_by.is_some() {
        if pool::is_served(&pool) {
            return show::json(&json!({ "served": true }));
        }
        // Before there is a network nothing can reach the keepers.
        if kept::keepers(&pool)?.is_some() {
            return show::json(&json!({ "kept": true }));
        }
    }
    let offline = Offline { replay: how.replay, accept_loss: how.accept_loss };
    let done = match recover_pool(&pool, offline) {
        // The daemon brings its log to the files itself; what it may not do is end while clients live.
        Err(DaemonError::Pool(PoolError::InUse(_))) if how.registered_by.is_none() => {
            end_daemon(&pool)?;
            once_free(|| recover_pool(&pool, offline))?
        }
        done => done?,
    };
    if how.json {
        show::json(&done)?
    } else {
        tell(&pool, &done)
    }
    if done.guards_left.is_empty() { Ok(()) } else { bail!("{}", done.guards_left.join("\n")) }
}

/// A link in the registry speaks for the pools of whoever made it.
fn check_registered(pool: &Path, by: u32) -> Result<()> {
    let owner = std::fs::metadata(pool).with_context(|| pool.display().to_string())?.uid();
    if by != 0 && by != owner {
        let (owner, by) = (user::name(owner), user::name(by));
        bail!("it belongs to {owner}, and {by} registered it: `seawall recover --forget {}`", pool.display());
    }
    Ok(())
}

/// A daemon that was killed has the pool until its last thread has come back from the disk.
fn once_free<T>(recover: impl Fn() -> Result<T, DaemonError>) -> Result<T, DaemonError> {
    let begin = Instant::now();
    loop {
        match recover() {
            Err(DaemonError::Pool(PoolError::InUse(_))) if begin.elapsed() < DYING => {
                std::thread::sleep(LOOK)
            }
            done => return done,
        }
    }
}

fn end_daemon(pool: &Path) -> Result<()> {
    let Some(control) = Control::connect(pool)? else { return Ok(()) };
    control.request::<Stopped>(Kind::Stop, &Stop { if_idle: false, stay: false }).with_context(|| {
        format!(
            "a daemon is serving {0}; `seawall drain --pool {0}` brings its log to the files",
            pool.display()
        )
    })?;
    ask::wait_for_end(pool, &control);
    Ok(())
}

fn tell(pool: &Path, done: &Recovery) {
    let report = &done.report;
    outln!("recovered {}", pool.display());
    match (report.live, report.replayed) {
        (0, _) => outln!("nothing was live: every file was up to date"),
        (n, true) => outln!("replayed {n} records, {}, into:", size::human(report.bytes)),
        (n, false) => {
            outln!("{n} records were in their files already (the machine did not restart); synced:")
        }
    }
    report.files.iter().for_each(|file| outln!("  {}", file.display()));
    if report.torn > 0 {
        outln!("the crash cut {} writes short; they had not been acknowledged", report.torn);
    }
    report.dropped.iter().for_each(|line| outln!("not needed: {line}"));
    report.given_up.iter().for_each(|line| outln!("given up: {line}"));
}

/// The guards below a data directory.
pub fn guards(dir: &Path) -> Vec<(PathBuf, Preset, Claim)> {
    let of = |preset| guard::find(preset, dir).into_iter().map(move |at| (at, preset));
    let found = Preset::ALL.into_iter().flat_map(of);
    found.filter_map(|(at, preset)| guard::claimed(&at).map(|claim| (at, preset, claim))).collect()
}
