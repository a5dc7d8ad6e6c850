//! What the database, Seawall and the machine say about one turn: a snapshot before, one after, samples between.
//!
//! The same capture as `seawall snap`, called here; nothing is counted a second time. Sessions are looked at ten
//! times a second, on every side alike.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use seawall_awr::database::{Address, Database, connect};
use seawall_awr::model::{Snapshot, Target};
use seawall_awr::period::Period;
use seawall_awr::{Samples, clock, machine_only, take};

use super::record::{DbTime, Work};

const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// How many waits are kept.
const WAITS: usize = 6;

/// A turn being watched.
pub struct Watch {
    /// None of a store in the load's own process.
    database: Option<Box<dyn Database>>,
    target: Target,
    pool: Option<PathBuf>,
    before: Snapshot,
    sampler: Option<Sampler>,
}

struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Samples>,
}

/// What was seen.
pub struct Observed {
    pub period: Period,
}

impl Watch {
    /// Begins.
    pub fn start(address: Option<&Address>, pool: Option<&Path>, sampled: bool) -> Result<Self> {
        let mut database = address.map(connect).transpose()?;
        let target = match &mut database {
            Some(database) => database.target()?,
            None => machine_only(),
        };
        let (before, failed) = take(&target, "", asked(&mut database), pool);
        if let Some(error) = failed {
            return Err(error.context("cannot ask the database before the load"));
        }
        let sampler = address.filter(|_| sampled).map(Sampler::start).transpose()?;
        Ok(Watch { database, target, pool: pool.map(Path::to_owned), before, sampler })
    }

    /// Ends.
    pub fn finish(mut self) -> Result<Observed> {
        let samples = self.sampler.take().map(Sampler::finish).unwrap_or_default();
        let (mut after, failed) = take(&self.target, "", asked(&mut self.database), self.pool.as_deref());
        if let Some(error) = failed {
            return Err(error.context("the database did not answer after the load"));
        }
        (self.before.id, after.id) = (1, 2);
        let period =
            Period::of(&[self.before, after], &samples).context("the turn's two snapshots make no period")?;
        Ok(Observed { period })
    }
}

/// The cast shortens the trait object's lifetime, which an Option around it would not do by itself.
fn asked(database: &mut Option<Box<dyn Database>>) -> Option<&mut dyn Database> {
    database.as_mut().map(|database| &mut **database as &mut dyn Database)
}

impl Sampler {
    fn start(address: &Address) -> Result<Self> {
        let mut database = connect(address)?;
        let stop = Arc::new(AtomicBool::new(false));
        let asked = stop.clone();
        let thread = thread::spawn(move || {
            let mut seen = Samples::default();
            while !asked.load(Ordering::Relaxed) && database.can_sample() {
                // If the database has vanished, its load says so.
                let Ok(samples) = database.sample() else { break };
                seen.ticks.push(clock::wall_ms());
                seen.samples.extend(samples);
                thread::sleep(SAMPLE_EVERY);
            }
            seen
        });
        Ok(Sampler { stop, thread })
    }

    fn finish(self) -> Samples {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

impl Observed {
    /// What was done; `commits` as the load counted them.
    pub fn work(&self, commits: u64) -> Work {
        let total = |name: &str| self.period.load.iter().find(|l| l.name == name).map_or(0.0, |l| l.total);
        Work {
            commits: commits as f64,
            rows: total("Rows changed"),
            wal_bytes: total("Redo size"),
            wal_images: total("Full-page images in redo"),
        }
    }

    /// Where the clients' time went.
    pub fn time(&self) -> DbTime {
        let period = &self.period;
        let all: f64 = period.events.iter().map(|e| e.time_s).sum();
        let share = |time: f64| if all > 0.0 { time * 100.0 / all } else { 0.0 };
        let mut shares: Vec<(String, f64)> =
            period.events.iter().map(|e| (e.name.clone(), share(e.time_s))).collect();
        shares.truncate(WAITS);
        let samples = if period.samples > 0 { period.active_seen } else { 0 };
        DbTime { seconds: period.db_time_s.unwrap_or(0.0), shares, samples }
    }

    /// Waits of Seawall's of one name.
    pub fn seawall_waits(&self, name: &str) -> Option<f64> {
        let part = self.period.seawall.as_ref()?;
        Some(part.waits.iter().find(|w| w.name == name).map_or(0.0, |w| w.count))
    }

    /// What a reader of the turn has to know: a clock that jumped, counters that began again.
    pub fn notes(&self) -> Vec<String> {
        let matters =
            |w: &&String| ["clock", "began again", "restarted", "Seawall:"].iter().any(|p| w.contains(p));
        self.period.warnings.iter().filter(matters).cloned().collect()
    }
}
