//! `seawall freeze` and `seawall thaw`: what is copied in between needs no recovery by Seawall, on any host.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{SigSet, Signal};
use seawall_core::path_text::Shown;
use seawall_daemon::control::{Control, ControlError};
use seawall_daemon::freeze::{Answered, Asked, FrozenStatus, Wanted};
use seawall_daemon::guard::Claim;
use seawall_daemon::status::Status;
use seawall_wire::message::Kind;
use serde_json::json;

use super::awr::snap::duration;
use super::{inspect, recover};
use crate::{beside, daemons, pool, show};

/// Take a database out of the log while its files are copied or a snapshot of their file system is taken
#[derive(clap::Args)]
pub struct Freeze {
    /// One database's directory; without it everything in the pool
    directory: Option<PathBuf>,
    /// The pool; without it that of DIRECTORY, or your default pool
    #[arg(long)]
    pool: Option<PathBuf>,
    /// End by itself after this time (20s, 10m). Without it after an hour, or with COMMAND; where writes wait for the end, as
    /// under the policy atomic, after 30 s, and 60 s is the most
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    limit: Option<Duration>,
    /// JSON instead of text
    #[arg(long, conflicts_with = "command")]
    json: bool,
    /// Freeze, run this, thaw. The exit code is the command's, or 1 if the freeze had ended before it did
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// End a freeze: its files go back into the log
#[derive(clap::Args)]
pub struct Thaw {
    /// One of the frozen databases' directories, by which the pool is found
    directory: Option<PathBuf>,
    /// The pool; without it that of DIRECTORY, or your default pool
    #[arg(long)]
    pool: Option<PathBuf>,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Freezes; with a command around it.
pub fn freeze(how: &Freeze) -> Result<ExitCode> {
    let directory = how.directory.as_deref().map(real).transpose()?;
    let pool = find(directory.as_deref(), how.pool.as_deref())?;
    let Some(control) = Control::connect(&pool).with_context(|| pool.display().to_string())? else {
        return unserved(&pool, how);
    };
    let bound = !how.command.is_empty();
    let seconds = how.limit.map(|limit| limit.as_secs());
    let done: Answered =
        control.request(Kind::Freeze, &Asked::Freeze(Wanted { directory, seconds, bound }))?;
    if bound {
        return around(&control, &how.command);
    }
    if how.json {
        show::json(&json!({
            "frozen": true, "pool": Shown(&pool), "directories": shown(&done.directories), "seconds": done.seconds,
            "writes_wait": done.writes_wait,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let waiting = if done.writes_wait { ", writes wait" } else { "" };
    outln!("frozen, every record is in its file, guards down{waiting}: {}", list(&done.directories));
    let limit = done.seconds.map(|seconds| format!(", or for {seconds} s")).unwrap_or_default();
    outln!("until `seawall thaw --pool {}`{limit}", pool.display());
    Ok(ExitCode::SUCCESS)
}

/// The command, and the end of the freeze.
fn around(control: &Control, command: &[OsString]) -> Result<ExitCode> {
    let code = run(command);
    let thawed: Result<Answered, ControlError> = control.request(Kind::Freeze, &Asked::Thaw);
    match thawed {
        Ok(thawed) if thawed.frozen => left_out(&thawed),
        _ => bail!(
            "the freeze ended before the command did (its limit, somebody's `seawall thaw`, or the end of the daemon): what was \
             copied may need records that are in the log. Copy it again"
        ),
    }
    code
}

fn run(command: &[OsString]) -> Result<ExitCode> {
    let (program, arguments) = command.split_first().context("no command")?;
    let child = Command::new(program).args(arguments).spawn();
    let mut child = child.with_context(|| format!("starting {}", program.to_string_lossy()))?;
    // It gets the terminal's signals like us, and we outlive it: whoever ends it wants the freeze to end after it.
    let mut mask = SigSet::empty();
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().for_each(|signal| mask.add(signal));
    mask.thread_block().context("blocking signals")?;
    let status = child.wait().context("waiting for the command")?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Without a daemon the files are as the last one left them.
fn unserved(pool: &Path, how: &Freeze) -> Result<ExitCode> {
    let live = inspect::look(pool)?.live;
    if live > 0 {
        bail!(
            "no daemon serves {0}, and its log holds {live} live records: `seawall recover --pool {0}` first",
            pool.display()
        );
    }
    if let Some((at, ..)) = how.directory.as_deref().and_then(|dir| recover::guards(dir).into_iter().next()) {
        bail!(
            "no daemon serves {0}, and the guard {1} is up: `seawall recover --pool {0}` first",
            pool.display(),
            at.display()
        );
    }
    if !how.command.is_empty() {
        return run(&how.command);
    }
    match how.json {
        true => show::json(&json!({ "frozen": false, "pool": Shown(pool) }))?,
        false => {
            outln!("nothing to freeze: no daemon serves {}, and nothing is live in it", pool.display())
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends it.
pub fn thaw(how: &Thaw) -> Result<()> {
    let directory = how.directory.as_deref().map(real).transpose()?;
    let pool = find(directory.as_deref(), how.pool.as_deref())?;
    let control = Control::connect(&pool)?.with_context(|| format!("no daemon serves {}", pool.display()))?;
    let done: Answered = control.request(Kind::Freeze, &Asked::Thaw)?;
    if !done.frozen {
        bail!(
            "nothing is frozen in {}: a freeze ends by itself after its --for, and with its daemon. What was copied since may \
             need records that are in the log",
            pool.display()
        );
    }
    left_out(&done);
    if how.json {
        return show::json(&done);
    }
    outln!("thawed: {}", list(&done.directories));
    Ok(())
}

fn left_out(done: &Answered) {
    for line in &done.left_out {
        errln!("seawall: stays out of the log, with real fsyncs, until the database starts anew: {line}");
    }
}

fn real(dir: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(dir).with_context(|| dir.display().to_string())
}

/// The pool that is named, or that has the directory, or the default one.
fn find(directory: Option<&Path>, named: Option<&Path>) -> Result<PathBuf> {
    let (Some(dir), None) = (directory, named) else { return pool::existing(named) };
    let claims = recover::guards(dir).into_iter().map(|(_, _, Claim { pool, .. })| pool);
    let registered = seawall_daemon::boot::entries().unwrap_or_default().into_iter().map(|entry| entry.pool);
    let mut all: Vec<PathBuf> = claims.chain(registered).chain(beside::noted()).collect();
    all.push(pool::emulated_default());
    all.extend(beside::place(dir, Path::to_owned));
    all.extend(daemons::running().into_iter().map(|one| one.pool));
    if let Some(pool) = all.into_iter().find(|pool| has(pool, dir)) {
        return pool::existing(Some(&pool));
    }
    let pool = pool::existing(None).with_context(|| format!("looking for the pool of {}", dir.display()))?;
    Ok(pool)
}

/// True if a daemon serves this directory from the pool.
fn has(pool: &Path, dir: &Path) -> bool {
    let Ok(Some(control)) = Control::connect(pool) else { return false };
    let status = control.request::<Status>(Kind::Status, &());
    status.is_ok_and(|status| {
        status.roots.iter().any(|root| root.path.starts_with(dir) || dir.starts_with(&root.path))
    })
}

/// For `status`.
pub fn words(frozen: &FrozenStatus) -> String {
    let until = match frozen.seconds_left {
        Some(left) => format!("ends by itself in {left} s"),
        None => "until its command ends".into(),
    };
    let meanwhile = if frozen.writes_wait { "writes wait" } else { "fsyncs are real" };
    format!(
        "{}, for {} s, {until}: {meanwhile}, no guards. `seawall thaw` ends it",
        list(&frozen.directories),
        frozen.seconds
    )
}

fn shown(paths: &[PathBuf]) -> Vec<Shown<'_>> {
    paths.iter().map(|path| Shown(path)).collect()
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
