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
use serde_json::{Value, json};

use super::{inspect, recover};
use crate::{beside, daemons, pool, show, time};

/// Take a database out of the log while its files are copied or a snapshot of their file system is taken
#[derive(clap::Args)]
pub struct Freeze {
    #[command(flatten)]
    what: What,
    /// Thaw automatically after this time (20s, 10m). Without it after an hour, or when COMMAND ends; where writes wait
    /// for the end, as under the policy atomic, after 30 s, and 60 s is the most
    #[arg(long = "for", value_name = "DURATION", value_parser = time::period)]
    limit: Option<Duration>,
    /// JSON instead of text
    #[arg(long, conflicts_with = "command")]
    json: bool,
    /// Freeze, run this command, thaw. The exit code is the command's, or 1 if the freeze ended before the command did
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// End a freeze: its files go back into the log
#[derive(clap::Args)]
pub struct Thaw {
    #[command(flatten)]
    what: What,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Which logs to freeze.
#[derive(clap::Args)]
struct What {
    /// One database's directory, which leads to its pool; without it everything in the pool
    directory: Option<PathBuf>,
    /// The pool, or several; without it the pool of DIRECTORY, or your default pool
    #[arg(long)]
    pool: Vec<PathBuf>,
    /// Every pool that is in use: as root, all pools of this machine
    #[arg(long, conflicts_with_all = ["directory", "pool"])]
    all: bool,
}

impl What {
    /// The pools, and the directory, whose path is a real one.
    fn find(&self) -> Result<(Vec<PathBuf>, Option<PathBuf>)> {
        let directory = self.directory.as_deref().map(real).transpose()?;
        let pools = match self.pool.as_slice() {
            _ if self.all => daemons::running().into_iter().map(|one| one.pool).collect(),
            [] => vec![find(directory.as_deref())?],
            named => named.iter().map(|pool| pool::existing(Some(pool))).collect::<Result<_>>()?,
        };
        Ok((pools, directory))
    }
}

/// A pool that is frozen.
struct Frozen {
    pool: PathBuf,
    control: Control,
    done: Answered,
}

/// Freezes; with a command around it.
pub fn freeze(how: &Freeze) -> Result<ExitCode> {
    let (pools, directory) = how.what.find()?;
    let mut frozen: Vec<Frozen> = Vec::new();
    for pool in &pools {
        match freeze_one(pool, directory.as_deref(), how) {
            Ok(one) => frozen.extend(one),
            Err(e) => {
                frozen.iter().for_each(|one| drop(thaw_one(&one.control)));
                return Err(e);
            }
        }
    }
    if !how.command.is_empty() {
        return around(&frozen, &how.command);
    }
    if how.json {
        show::json(&in_json(&pools, &frozen))?;
        return Ok(ExitCode::SUCCESS);
    }
    for Frozen { pool, done, .. } in &frozen {
        let waiting = if done.writes_wait { ", writes wait" } else { "" };
        outln!("frozen, every record is in its file, guards down{waiting}: {}", list(&done.directories));
        let limit = done.seconds.map(|seconds| format!(", or for {seconds} s")).unwrap_or_default();
        outln!("until `seawall thaw --pool {}`{limit}", pool.display());
    }
    if frozen.is_empty() {
        outln!("nothing to freeze: no daemon serves {}, and nothing is live in it", list(&pools));
    }
    Ok(ExitCode::SUCCESS)
}

/// `None`: no daemon serves it, and nothing of it is in the log.
fn freeze_one(pool: &Path, directory: Option<&Path>, how: &Freeze) -> Result<Option<Frozen>> {
    let Some(control) = Control::connect(pool).with_context(|| pool.display().to_string())? else {
        check_unserved(pool, directory)?;
        return Ok(None);
    };
    let seconds = how.limit.map(|limit| limit.as_secs());
    let bound = !how.command.is_empty();
    let wanted = Wanted { directory: directory.map(Path::to_owned), seconds, bound };
    let done: Answered = control.request(Kind::Freeze, &Asked::Freeze(wanted))?;
    Ok(Some(Frozen { pool: pool.into(), control, done }))
}

/// One pool as it is, several as a list.
fn in_json(pools: &[PathBuf], frozen: &[Frozen]) -> Value {
    let one = |pool: &PathBuf| match frozen.iter().find(|one| one.pool == *pool) {
        None => json!({ "frozen": false, "pool": Shown(pool) }),
        Some(Frozen { done, .. }) => json!({
            "frozen": true, "pool": Shown(pool), "directories": shown(&done.directories), "seconds": done.seconds,
            "writes_wait": done.writes_wait,
        }),
    };
    match pools {
        [only] => one(only),
        all => all.iter().map(one).collect(),
    }
}

/// The command, and the end of the freeze.
fn around(frozen: &[Frozen], command: &[OsString]) -> Result<ExitCode> {
    let code = run(command);
    let mut lasted = true;
    for one in frozen {
        match thaw_one(&one.control) {
            Ok(thawed) if thawed.frozen => left_out(&thawed),
            _ => lasted = false,
        }
    }
    if !lasted {
        bail!(
            "the freeze ended before the command did (its limit, another `seawall thaw`, or the end of the \
             daemon): what was copied may need records that are in the log. Copy it again"
        );
    }
    code
}

fn thaw_one(control: &Control) -> Result<Answered, ControlError> {
    control.request(Kind::Freeze, &Asked::Thaw)
}

fn run(command: &[OsString]) -> Result<ExitCode> {
    let (program, arguments) = command.split_first().context("no command")?;
    let child = Command::new(program).args(arguments).spawn();
    let mut child = child.with_context(|| format!("cannot start {}", program.to_string_lossy()))?;
    // It gets the terminal's signals like us, and we outlive it: whoever ends it wants the freeze to end after it.
    let mut mask = SigSet::empty();
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().for_each(|signal| mask.add(signal));
    mask.thread_block().context("cannot block signals")?;
    let status = child.wait().context("cannot wait for the command")?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Without a daemon the files are as the last one left them.
fn check_unserved(pool: &Path, directory: Option<&Path>) -> Result<()> {
    let live = inspect::look(pool)?.live;
    if live > 0 {
        bail!(
            "no daemon serves {0}, and its log holds {live} live records: `seawall recover --pool {0}` first",
            pool.display()
        );
    }
    if let Some((at, ..)) = directory.and_then(|dir| recover::guards(dir).into_iter().next()) {
        bail!(
            "no daemon serves {0}, and the guard {1} is up: `seawall recover --pool {0}` first",
            pool.display(),
            at.display()
        );
    }
    Ok(())
}

/// Ends it.
pub fn thaw(how: &Thaw) -> Result<()> {
    let mut thawed = Vec::new();
    for pool in how.what.find()?.0 {
        let control =
            Control::connect(&pool)?.with_context(|| format!("no daemon serves {}", pool.display()))?;
        let done = thaw_one(&control)?;
        // Of all those in use some may not have been frozen.
        if !done.frozen && !how.what.all {
            bail!(
                "nothing is frozen in {}: a freeze ends by itself after its --for, and with its daemon. What \
                 was copied after that may need records that are in the log",
                pool.display()
            );
        }
        left_out(&done);
        thawed.push(done);
    }
    if how.json {
        return match thawed.as_slice() {
            [only] => show::json(only),
            all => show::json(&all),
        };
    }
    thawed.iter().filter(|done| done.frozen).for_each(|done| outln!("thawed: {}", list(&done.directories)));
    Ok(())
}

fn left_out(done: &Answered) {
    for line in &done.left_out {
        errln!(
            "seawall: this file stays out of the log, with real fsyncs, until the database starts again: \
             {line}"
        );
    }
}

/// The directory's real path; of a disk's image, the directory that it lies in.
fn real(dir: &Path) -> Result<PathBuf> {
    let real = std::fs::canonicalize(dir).with_context(|| dir.display().to_string())?;
    match real.parent() {
        Some(parent) if real.is_file() => Ok(parent.to_owned()),
        _ => Ok(real),
    }
}

/// The pool that has the directory, or the default one.
fn find(directory: Option<&Path>) -> Result<PathBuf> {
    let Some(dir) = directory else { return pool::existing(None) };
    let claims = recover::guards(dir).into_iter().map(|(_, _, Claim { pool, .. })| pool);
    let registered = seawall_daemon::boot::entries().unwrap_or_default().into_iter().map(|entry| entry.pool);
    let mut all: Vec<PathBuf> = claims.chain(registered).chain(beside::noted()).collect();
    all.push(pool::emulated_default());
    all.extend(beside::place(dir, Path::to_owned));
    all.extend(daemons::running().into_iter().map(|one| one.pool));
    if let Some(pool) = all.into_iter().find(|pool| has(pool, dir)) {
        return pool::existing(Some(&pool));
    }
    let pool = pool::existing(None).with_context(|| format!("cannot find the pool of {}", dir.display()))?;
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
