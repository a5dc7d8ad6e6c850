//! `seawall mirror`: gives a log on a block device a second copy, or lets it go on without a lost one.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use seawall_core::pool as pools;
use seawall_daemon::control::{Control, ControlError};
use seawall_daemon::rebuild::{Asked, RebuildState, RebuildStatus, Wanted};
use seawall_daemon::status::Status;
use seawall_wire::message::Kind;

use crate::{interrupt, pool, user};

/// How often the daemon is asked how far it is.
const LOOK: Duration = Duration::from_millis(200);

/// Give a log on a block device a second copy, or replace a lost one; in a log in use, only replace a lost one
#[derive(clap::Args)]
pub struct Mirror {
    /// The log: the copy that exists
    #[arg(long)]
    pool: Option<PathBuf>,
    /// The second copy: a new file on another disk, or another disk or partition, which must be empty; for a log in use
    /// also the lost copy itself, if it works again
    #[arg(long, value_name = "PATH", required_unless_present = "alone")]
    on: Option<PathBuf>,
    /// Overwrite what the disk or partition holds
    #[arg(long, requires = "on")]
    force: bool,
    /// Go on without the other copy, which is lost for good: records that only the lost copy held are given up
    #[arg(long, conflicts_with = "on")]
    alone: bool,
}

/// Does it, and says what was done.
pub fn mirror(how: &Mirror) -> Result<()> {
    let real = pool::existing(how.pool.as_deref())?;
    user::become_owner(&real)?;
    // The other copy gets this one's name as the user gave it: one that stays.
    let at = how.pool.clone().unwrap_or_else(|| real.clone());
    let memory = Path::new(pools::MEMORY);
    let Some(on) = &how.on else {
        pools::block::part_mirror(&at, memory)?;
        outln!("{} goes on without its other copy", at.display());
        return Ok(());
    };
    if let Some(control) = Control::connect(&real).with_context(|| real.display().to_string())? {
        return rebuild(&control, &at, on, how.force);
    }
    pools::block::join_mirror(&at, on, how.force, memory)?;
    outln!("{} is mirrored on {}", at.display(), on.display());
    Ok(())
}

/// Has the daemon rebuild the lost copy of a log in use, and shows how far it is.
fn rebuild(control: &Control, at: &Path, on: &Path, force: bool) -> Result<()> {
    // From here on: what was asked for goes on, whatever becomes of us.
    let signals = interrupt::block()?;
    let path = std::path::absolute(on).with_context(|| on.display().to_string())?;
    let mut status: RebuildStatus = control.request(Kind::Mirror, &Asked::Rebuild(Wanted { path, force }))?;
    let mut line = Line::new();
    while status.is_under_way() {
        line.show(&status);
        if interrupt::within(&signals, LOOK)? {
            line.end();
            bail!(
                "the copy on {} is still being rebuilt, by the daemon: `seawall status --pool {}` shows how far it is",
                on.display(),
                at.display()
            );
        }
        let found = control.request::<Option<RebuildStatus>>(Kind::Mirror, &Asked::Look);
        status = found.map_err(|error| gone(error, at))?.context("the daemon knows of no rebuild")?;
    }
    line.end();
    match (status.state, status.error) {
        (RebuildState::Done, _) => outln!("{} is whole: the log is on both copies again", on.display()),
        (_, why) => bail!(
            "the copy on {} was not rebuilt: {}. The log goes on with the other one alone",
            on.display(),
            why.unwrap_or_default()
        ),
    }
    tell_where(control, at)
}

fn gone(error: ControlError, at: &Path) -> anyhow::Error {
    match error {
        ControlError::Gone => anyhow!(
            "the daemon ended before the copy was whole: `seawall status --pool {}` shows whether another \
             daemon serves the log; if so, run this command again. Otherwise the next start of the log \
             finishes the copy",
            at.display()
        ),
        error => error.into(),
    }
}

/// If the path that it was named by leads to none of the copies any more.
fn tell_where(control: &Control, at: &Path) -> Result<()> {
    let status = control.request::<Status>(Kind::Status, &())?;
    let Some(mirror) = status.journal.and_then(|journal| journal.mirror) else { return Ok(()) };
    let [first, second] = mirror.copies.map(|copy| copy.path);
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    if ![&first, &second].iter().any(|path| real(path) == real(at)) {
        outln!(
            "{} is not a copy of the log any more: from the next start on, name {} or {} instead",
            at.display(),
            first.display(),
            second.display()
        );
    }
    Ok(())
}

/// One line of a terminal, written over and over.
struct Line {
    is_shown: bool,
}

impl Line {
    fn new() -> Self {
        Self { is_shown: std::io::stderr().is_terminal() }
    }

    fn show(&self, status: &RebuildStatus) {
        if self.is_shown {
            let text = match status.state {
                RebuildState::Preparing => "making room".into(),
                _ => format!("rebuilding {} % of {} MiB", status.percent(), status.bytes.div_ceil(1 << 20)),
            };
            let _ = write!(std::io::stderr(), "\r\x1b[K{}: {text}", status.path.display());
        }
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
