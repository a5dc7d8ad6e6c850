//! `seawall snap`: one snapshot, or one every so often with activity samples in between.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use seawall_awr::database::Address;
use seawall_awr::{Recorder, Repository, Taken};
use serde_json::json;

use super::Repo;
use crate::{interrupt, pool, show, time};

/// How often activity is sampled.
const SECOND: Duration = Duration::from_secs(1);
/// How often old snapshots are dropped.
const HOUR: Duration = Duration::from_secs(3600);

/// Take a snapshot of the database, Seawall and the machine
#[derive(clap::Args)]
pub struct Snap {
    /// The database: postgres://USER@HOST/DB, 'host=… user=…', a socket or its directory, mariadb:SOCKET, redis:SOCKET,
    /// redis://HOST:PORT. Without it only the machine (and Seawall)
    #[arg(long, value_parser = str::parse::<Address>)]
    db: Option<Address>,
    /// The pool of the Seawall under it; without it your default pool, if a daemon serves it
    #[arg(long)]
    pool: Option<PathBuf>,
    /// Do not ask Seawall
    #[arg(long, conflicts_with = "pool")]
    no_seawall: bool,
    #[command(flatten)]
    repo: Repo,
    /// A label of your choice, shown in lists and reports
    #[arg(long, default_value = "")]
    label: String,
    /// Keep running: take a snapshot every so often (60s, 5m, 1h), and activity samples every second
    #[arg(long, value_parser = time::period)]
    every: Option<Duration>,
    /// Stop after this time; without it at Ctrl-C. The last snapshot is taken at the end
    #[arg(long = "for", value_parser = time::period, requires = "every")]
    limit: Option<Duration>,
    /// Do not sample activity
    #[arg(long, requires = "every")]
    no_samples: bool,
    /// Drop snapshots older than this (30d), except those in a baseline
    #[arg(long, value_parser = time::period, requires = "every")]
    keep: Option<Duration>,
    /// JSON instead of text, one object per line
    #[arg(long)]
    json: bool,
}

/// Takes it, or them.
pub fn snap(ask: &Snap) -> Result<()> {
    let pool = served_pool(ask)?;
    let repository = Repository::open_or_create(&ask.repo.path())?;
    let mut recorder = Recorder::start(repository, ask.db.clone(), pool, &ask.label)?;
    match ask.every {
        None => {
            let taken = recorder.snapshot()?;
            tell(ask, &recorder, &taken)?;
            if recorder.is_cut_off() {
                bail!(
                    "the connection to the database was lost during the snapshot; snapshot {} has only the \
                     machine's part",
                    taken.id
                );
            }
            Ok(())
        }
        Some(every) => record(ask, &mut recorder, every),
    }
}

/// A pool that was named must exist; the default one counts only if a daemon serves it.
fn served_pool(ask: &Snap) -> Result<Option<PathBuf>> {
    if ask.no_seawall {
        return Ok(None);
    }
    if ask.pool.is_some() {
        return pool::existing(ask.pool.as_deref()).map(Some);
    }
    let default = pool::existing(None).ok();
    Ok(default.filter(|pool| pool::is_served(pool)))
}

fn record(ask: &Snap, recorder: &mut Recorder, every: Duration) -> Result<()> {
    let signals = interrupt::block()?;
    let begin = Instant::now();
    let (mut next, mut next_prune, mut interrupted) = (begin, begin, false);
    let over = |now: Instant| ask.limit.is_some_and(|limit| now >= begin + limit);
    let mut second = begin;
    loop {
        let now = Instant::now();
        let last = interrupted || over(now);
        if last || now >= next {
            let taken = recorder.snapshot()?;
            tell(ask, recorder, &taken)?;
            while next <= now {
                next += every;
            }
        }
        if last {
            break;
        }
        if !ask.no_samples
            && let Some(why) = recorder.sample()?
        {
            errln!(
                "seawall: the database is gone: {why}. Trying again every second; what was recorded is kept"
            );
        }
        if let Some(keep) = ask.keep.filter(|_| now >= next_prune) {
            recorder.prune(seawall_awr::clock::wall_ms() - keep.as_millis() as i64)?;
            next_prune = now + HOUR;
        }
        second += SECOND;
        interrupted = interrupt::within(&signals, second.saturating_duration_since(Instant::now()))?;
        // After a pause (a suspended machine, a stopped process) nothing is caught up on.
        let now = Instant::now();
        if now >= second + SECOND {
            second = now;
        }
    }
    if recorder.is_cut_off() {
        bail!("the database could not be reached at the end; what was recorded before is kept");
    }
    Ok(())
}

fn tell(ask: &Snap, recorder: &Recorder, taken: &Taken) -> Result<()> {
    let target = recorder.target();
    if ask.json {
        outln!(
            "{}",
            json!({ "snapshot": taken.id, "target": target, "notes": taken.notes, "cpu_us": taken.cpu_us })
        );
        return Ok(());
    }
    let time = seawall_awr::clock::utc(seawall_awr::clock::wall_ms());
    outln!(
        "snapshot {} · {time} · {} {}, {} of CPU time",
        taken.id,
        target.product,
        target.name,
        show::time(taken.cpu_us * 1000)
    );
    taken.notes.iter().for_each(|note| outln!("  {note}"));
    Ok(())
}
