//! `--recovery`: the settings that keep checkpoints near, and what a crash of a running server would cost.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use seawall_awr::database::{self, Address};
use seawall_awr::model::Snapshot;
use seawall_awr::recovery::{Exposure, redo};
use seawall_page::scale::{bytes, time};
use seawall_wire::shm::Preset;
use serde::Serialize;

use crate::recovery::{Recovery, Setting};

/// How long the redo of a running server is looked at.
const LOOK: Duration = Duration::from_secs(3);

/// The goal.
#[derive(clap::Args)]
pub struct Goal {
    /// Advise on settings that take checkpoints often enough that after a crash the time from the start of the server
    /// to its first transaction is no longer than this, for example 1s
    #[arg(long, value_name = "TIME", value_parser = crate::time::goal)]
    recovery: Option<Duration>,
    /// The data directory, whose last recovery shows how fast its redo is replayed
    #[arg(long, value_name = "DIR", requires = "recovery")]
    data: Option<PathBuf>,
    /// The running database, to measure how much redo it writes and what a crash now would cost
    #[arg(long, value_parser = str::parse::<Address>, requires = "recovery")]
    db: Option<Address>,
}

/// What is advised.
#[derive(Debug, Serialize)]
pub struct Near {
    /// The time wanted, seconds.
    goal_s: f64,
    /// Redo that is replayed in it, bytes.
    redo: u64,
    /// Redo that is replayed in a second, bytes.
    replayed: f64,
    /// Whether a recovery of this data showed that; else it is assumed.
    measured: bool,
    settings: Vec<Setting>,
    /// What the settings alone hold a recovery at, seconds.
    by_settings_s: f64,
    now: Option<Now>,
}

/// A server as it runs.
#[derive(Debug, Serialize)]
struct Now {
    /// Redo that it writes in a second, bytes.
    writes: f64,
    /// What a crash would cost now.
    exposed: Exposure,
}

/// The advice, if it is wanted.
///
/// # Errors
/// If the goal cannot be had, or the server cannot be asked.
pub fn advise(wanted: &Goal, preset: Preset) -> Result<Option<Near>> {
    let Some(goal) = wanted.recovery else { return Ok(None) };
    let data =
        wanted.data.as_ref().map(|data| data.canonicalize().with_context(|| data.display().to_string()));
    let recovery = Recovery::of(preset, data.transpose()?.as_deref(), goal)?;
    let speed = recovery.speed();
    Ok(Some(Near {
        goal_s: goal.as_secs_f64(),
        redo: recovery.most(),
        replayed: speed.replayed,
        measured: speed.measured,
        settings: recovery.settings(),
        by_settings_s: speed.seconds(recovery.bound() as f64),
        now: wanted.db.as_ref().map(|address| look(address, &recovery)).transpose()?,
    }))
}

fn look(address: &Address, recovery: &Recovery) -> Result<Now> {
    let mut database = database::connect(address)?;
    let mut look = || -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        database.capture(&mut snapshot)?;
        Ok(snapshot)
    };
    let before = written(&look()?);
    std::thread::sleep(LOOK);
    let now = look()?;
    let came = written(&now).zip(before).map(|(now, before)| now - before);
    let redo = redo(&now).context(
        "the server does not say how much redo it has: does it replay the redo of another server?",
    )?;
    let exposed = Exposure::by(redo, Some(recovery.goal()));
    Ok(Now { writes: came.unwrap_or(0.0).max(0.0) / LOOK.as_secs_f64(), exposed })
}

/// Redo since the start, bytes.
fn written(snapshot: &Snapshot) -> Option<f64> {
    let counter = |kind: &str, name: &str| snapshot.one(kind)?.counters.get(name).copied();
    counter("pg_stat_wal", "wal_bytes").or_else(|| counter("mariadb status", "Innodb_os_log_written"))
}

impl Near {
    /// For people.
    pub fn tell(&self) {
        let seconds = |s: f64| time(s * 1e9);
        let source = if self.measured {
            "measured at its last recovery"
        } else {
            "assumed: its first recovery will tell"
        };
        outln!(
            "\nRecovery within {}: {} of redo, replayed at {}/s ({source})",
            seconds(self.goal_s),
            bytes(self.redo as f64),
            bytes(self.replayed)
        );
        for Setting { name, value, why } in &self.settings {
            outln!("  {name} = {value}\n      {why}");
        }
        if self.by_settings_s > self.goal_s {
            outln!(
                "  With these settings alone a crash costs up to {}: by itself the server makes no \
                 checkpoints nearer than that. `seawall run --recovery` asks it for them while it runs",
                seconds(self.by_settings_s)
            );
        }
        if let Some(now) = &self.now {
            let every = match self.redo as f64 / now.writes {
                every if every < 3600.0 => format!("; that much comes in {}", seconds(every)),
                _ => String::new(),
            };
            let would = now.exposed.time.map_or_else(String::new, |timed| seconds(timed.seconds));
            outln!("  It writes {}/s of redo{every}. A crash now would cost {would}", bytes(now.writes));
        }
    }
}
