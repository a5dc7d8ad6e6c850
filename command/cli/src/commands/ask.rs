//! `seawall drain` and `seawall stop`: one request to the daemon.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use seawall_daemon::control::{Control, Drained, Stop, Stopped};
use seawall_wire::message::Kind;
use serde_json::json;

use crate::{daemons, pool, show};

/// How long `stop` waits for the daemon's process to end.
const END: Duration = Duration::from_secs(10);

/// The pool and its daemon.
pub fn connect(ask: &Ask) -> Result<(PathBuf, Option<Control>)> {
    to(daemons::find_one(&ask.named)?)
}

/// A pool and its daemon.
pub fn to(pool: PathBuf) -> Result<(PathBuf, Option<Control>)> {
    let control = Control::connect(&pool).with_context(|| pool.display().to_string())?;
    Ok((pool, control))
}

/// Without a daemon the log is as its last one left it.
fn without_daemon(pool: &Path) -> Result<bool> {
    let live = super::inspect::look(pool)?.live;
    if live > 0 {
        bail!(
            "no daemon serves {0}, and its log holds {live} live records: `seawall recover --pool {0}` brings \
             them to the files",
            pool.display()
        );
    }
    Ok(true)
}

/// Brings everything to the files.
pub fn drain(ask: &Ask) -> Result<()> {
    let (pool, control) = connect(ask)?;
    let (dirty, running) = match control {
        Some(control) => (control.request::<Drained>(Kind::Drain, &())?.dirty, true),
        None => (0, !without_daemon(&pool)?),
    };
    if ask.json {
        return show::json(&json!({ "drained": dirty == 0, "dirty": dirty, "daemon": running }));
    }
    match dirty {
        0 => outln!("drained: every record is in its file"),
        n => outln!(
            "{n} files are written faster than Seawall can drain them; what the log held before is in the \
             files"
        ),
    }
    Ok(())
}

/// Drains, lowers the guards, ends the daemon.
pub fn stop(ask: &Ask) -> Result<()> {
    let (pool, control) = connect(ask)?;
    let running = control.is_some();
    match control {
        Some(control) => {
            control.request::<Stopped>(Kind::Stop, &Stop { if_idle: false, stay: false })?;
            wait_for_end(&pool, &control);
        }
        None => drop(without_daemon(&pool)?),
    }
    if ask.json {
        return show::json(&json!({ "stopped": running }));
    }
    outln!(
        "{}",
        if running { "stopped: drained, guards down" } else { "no daemon was running; nothing is live" }
    );
    Ok(())
}

/// Waits until the daemon has let the pool go, and its memory.
pub fn wait_for_end(pool: &Path, control: &Control) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let begin = Instant::now();
    let second = Timespec { tv_sec: 1, tv_nsec: 0 };
    // The connection ends with the process.
    while begin.elapsed() < END {
        let mut fds = [PollFd::new(&control, PollFlags::IN)];
        if poll(&mut fds, Some(&second)).is_ok_and(|n| n > 0) {
            break;
        }
    }
    while begin.elapsed() < END && (pool::is_served(pool) || control.is_alive()) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A question to the daemon of a pool.
#[derive(clap::Args)]
pub struct Ask {
    #[command(flatten)]
    pub named: daemons::Named,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}
