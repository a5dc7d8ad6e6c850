//! A period: everything a report says about the time between two snapshots.
//!
//! Input: the snapshots from the first to the last, and the samples in between. Output: a [`Period`], plain
//! data that can be shown, compared, judged and written as JSON. What is not known is absent, never zero.

pub(crate) mod block_cache;
mod counted;
mod elapsed;
mod events;
mod io;
mod load;
mod machine;
mod sampled;
mod seawall;
mod statements;
mod time_model;
mod timeline;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use block_cache::{BlockCache, CacheSize, CachedFile};
pub use elapsed::PeriodError;
pub(crate) use elapsed::passed;
pub use load::mariadb_transactions;

use crate::delta::Deltas;
use crate::model::{Snapshot, Target};
use crate::repository::Samples;

/// The time between two snapshots.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Period {
    /// First and last snapshot, and the user's words for them.
    pub snapshots: [(i64, String); 2],
    /// How many snapshots there are from the first to the last.
    pub count: usize,
    /// Of what.
    pub target: Target,
    /// When it began and ended: wall clock, milliseconds.
    pub wall_ms: [i64; 2],
    /// How long it was, seconds, on a clock that does not jump.
    pub elapsed_s: f64,
    /// Time that clients' statements took, waits included, seconds.
    pub db_time_s: Option<f64>,
    /// The database does not count it: active sessions, summed over the samples.
    pub db_time_is_sampled: bool,
    /// CPU time of the server's processes, seconds.
    pub db_cpu_s: Option<f64>,
    /// Transactions that ended.
    pub transactions: Option<f64>,
    /// Transactions a second, snapshot by snapshot.
    pub rates: Vec<f64>,
    /// The load profile.
    pub load: Vec<Load>,
    /// Ratios in percent.
    pub efficiency: Vec<(String, f64)>,
    /// Where the clients' time went, longest first.
    pub events: Vec<Event>,
    /// What the server's own processes waited for, and I/O times that overlap with the events above.
    pub background: Vec<Event>,
    /// How many times activity was sampled.
    pub samples: usize,
    /// Sessions of clients in a statement, summed over the samples.
    pub active_seen: u64,
    /// Seawall's part.
    pub seawall: Option<Seawall>,
    /// Its block cache, if one was wanted.
    pub block_cache: Option<BlockCache>,
    /// Statements, longest first.
    pub statements: Vec<Statement>,
    /// Tables by what was read from outside the cache, by what was changed, and by scans of the whole.
    pub files: Vec<File>,
    /// Tables by rows changed.
    pub changed: Vec<File>,
    /// The database's own I/O, by who did it and on what.
    pub io: Vec<File>,
    /// The database's own I/O by file.
    pub io_files: Vec<File>,
    /// What took how many seconds, by the database's own clocks. Parts of each other: they do not add up.
    pub time_model: Vec<(String, f64)>,
    /// All that the database counts.
    pub activity: Vec<(String, f64)>,
    /// The machine.
    pub machine: Machine,
    /// What data and log lie on.
    pub storage: Vec<BTreeMap<String, String>>,
    /// Settings at the end.
    pub settings: BTreeMap<String, String>,
    /// What the database counted, for findings.
    pub counters: BTreeMap<String, f64>,
    /// How it went over time.
    pub timeline: Timeline,
    /// What limits what is said here.
    pub warnings: Vec<String>,
    /// CPU time that capturing took, seconds, the database's work for it not included.
    pub capture_cpu_s: f64,
    /// The database's work for it, seconds, where statements are counted.
    pub capture_server_s: Option<f64>,
}

/// A row of the load profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Its name.
    pub name: String,
    /// Over the whole period.
    pub total: f64,
    /// How to show it: `bytes`, `s`, or nothing.
    pub unit: String,
}

/// A row of the timed events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// The name DBAs know.
    pub name: String,
    /// Its class.
    pub class: String,
    /// How many waits, where somebody counted.
    pub waits: Option<f64>,
    /// Seconds.
    pub time_s: f64,
    /// The database's own names for it.
    pub native: String,
    /// `counted`: each wait was timed. `sampled`: its share of the samples.
    pub source: String,
    /// Sampled: how many samples saw it.
    pub seen: u64,
}

/// What Seawall measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Seawall {
    /// The honest label of the medium.
    pub medium: String,
    /// In one word.
    pub medium_name: String,
    /// Why we say so.
    pub because: String,
    /// The pool.
    pub pool: String,
    /// Its gauges at the end.
    pub log: BTreeMap<String, f64>,
    /// Its waits.
    pub waits: Vec<Wait>,
    /// Its waits by class of file.
    pub class_waits: Vec<Wait>,
    /// How full the log was when destaging began: percent, and how often.
    pub fill: Vec<(u64, u64)>,
    /// Bytes a second that were logged in the busiest interval between two snapshots.
    pub logged_peak: f64,
    /// Sums by class of file.
    pub classes: Vec<File>,
    /// Its files, busiest first.
    pub files: Vec<File>,
}

/// A histogram of one wait.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Wait {
    /// Its name.
    pub name: String,
    /// The class of files it was on; empty: all of them.
    #[serde(default)]
    pub class: String,
    /// Its stage.
    pub stage: String,
    /// How many.
    pub count: f64,
    /// Seconds, all of them.
    pub time_s: f64,
    /// Lower border of a bucket in ns, and how many were in it.
    pub buckets: Vec<(u64, u64)>,
}

/// A statement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Statement {
    /// The database's number for it.
    pub id: String,
    /// Its text.
    pub text: String,
    /// What was counted.
    pub counters: BTreeMap<String, f64>,
    /// Seconds.
    pub time_s: f64,
}

/// A file, a table, or a class of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct File {
    /// What it is.
    pub name: String,
    /// What was counted.
    pub counters: BTreeMap<String, f64>,
}

/// The machine, as sar says it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// CPUs.
    pub cpus: f64,
    /// Words about it.
    pub facts: BTreeMap<String, String>,
    /// Percent of CPU time by state.
    pub cpu: BTreeMap<String, f64>,
    /// Disks.
    pub disks: Vec<Disk>,
    /// Percent of the time in which somebody was held up.
    pub pressure: BTreeMap<String, f64>,
    /// Bytes at the end.
    pub memory: BTreeMap<String, f64>,
    /// Per second.
    pub rates: BTreeMap<String, f64>,
    /// Load average at the beginning and the end.
    pub load: [f64; 2],
}

/// A disk, as `sar -d` says it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "sysstat's own words")]
pub struct Disk {
    pub name: String,
    pub tps: f64,
    pub read_kb_s: f64,
    pub write_kb_s: f64,
    pub request_kb: f64,
    pub queue: f64,
    pub await_ms: f64,
    pub util: f64,
    pub flushes_s: f64,
}

/// How a period went.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// Sessions in a statement, on average, by wait class: seconds since the beginning, and series.
    pub activity: (Vec<f64>, Vec<(String, Vec<f64>)>),
    /// Percent of CPU time by state.
    pub cpu: (Vec<f64>, Vec<(String, Vec<f64>)>),
    /// Percent of the time in which a disk was busy.
    pub disks: (Vec<f64>, Vec<(String, Vec<f64>)>),
}

impl Period {
    /// What happened from the first to the last of these snapshots of one target.
    ///
    /// # Errors
    /// If they are fewer than two, or no time can be given.
    pub fn of(snapshots: &[Snapshot], samples: &Samples) -> Result<Self, PeriodError> {
        let [first, .., last] = snapshots else { return Err(PeriodError::TooFew) };
        let (elapsed_s, jumps) = elapsed::elapsed(snapshots)?;
        let deltas = Deltas::over(snapshots);
        let mut period = Self {
            snapshots: [(first.id, first.label.clone()), (last.id, last.label.clone())],
            count: snapshots.len(),
            target: last.target.clone(),
            wall_ms: [first.at.wall_ms, last.at.wall_ms],
            elapsed_s,
            samples: samples.ticks.len(),
            warnings: deltas.warnings.iter().cloned().chain(jumps).collect(),
            capture_cpu_s: snapshots[1..].iter().map(|s| s.cost.cpu_us as f64 / 1e6).sum(),
            ..Self::default()
        };
        if let Some(reading) = last.one("settings") {
            period.settings.clone_from(&reading.facts);
        }
        period.note(snapshots, samples);
        load::fill(&mut period, &deltas);
        period.rates = load::rates(snapshots);
        let sampled = sampled::Sampled::of(samples);
        period.active_seen = sampled.active;
        events::fill(&mut period, &deltas, &sampled);
        statements::fill(&mut period, &deltas);
        io::fill(&mut period, &deltas);
        time_model::fill(&mut period, &deltas);
        period.seawall = seawall::part(snapshots, &deltas);
        period.block_cache = block_cache::part(&deltas);
        period.machine = machine::machine(snapshots, &deltas, elapsed_s);
        period.timeline = timeline::timeline(snapshots, samples);
        period.storage = last.of("storage").map(storage).collect();
        Ok(period)
    }

    /// The number a setting begins with.
    pub fn settings_number(&self, name: &str) -> Option<f64> {
        self.settings.get(name)?.split(' ').next()?.parse().ok()
    }

    /// Per second.
    pub fn per_second(&self, total: f64) -> f64 {
        total / self.elapsed_s
    }

    /// Sessions in a statement, on average.
    pub fn average_active(&self) -> Option<f64> {
        self.db_time_s.map(|time| time / self.elapsed_s)
    }

    /// A time's share of DB time in percent.
    pub fn share(&self, time_s: f64) -> Option<f64> {
        self.db_time_s.filter(|all| *all > 0.0).map(|all| time_s * 100.0 / all)
    }

    /// All waits of one name among the clients' events.
    pub fn event(&self, name: &str) -> Option<&Event> {
        self.events.iter().find(|event| event.name == name)
    }

    /// What could not be read, each once; and whether samples cover the period.
    fn note(&mut self, snapshots: &[Snapshot], samples: &Samples) {
        for note in snapshots.iter().flat_map(|s| &s.notes) {
            if !self.warnings.contains(note) {
                self.warnings.push(note.clone());
            }
        }
        let covered = samples.ticks.len() as f64 / self.elapsed_s;
        if !samples.ticks.is_empty() && covered < 0.8 {
            self.warnings.push(format!(
                "activity was sampled {} times in {:.0} s: what was going on in between is not in the shares",
                samples.ticks.len(),
                self.elapsed_s
            ));
        }
    }
}

fn storage(reading: &crate::model::Reading) -> BTreeMap<String, String> {
    let mut facts = reading.facts.clone();
    facts.insert("what".into(), reading.item.clone());
    facts
}
