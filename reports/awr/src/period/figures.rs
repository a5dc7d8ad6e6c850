//! What a report says, as plain data: a [`Period`] and the rows of its tables.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::block_cache::BlockCache;
use super::keepers::Keepers;
use super::machine::Machine;
use super::timeline::Timeline;
use crate::delta::Delta;
use crate::model::Target;
use crate::recovery::Exposure;
use crate::seawall::buckets;

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
    /// The keepers of its log, if other hosts keep it.
    pub keepers: Option<Keepers>,
    /// What a crash would have cost at the worst of the snapshots.
    #[serde(default)]
    pub exposed: Option<Exposure>,
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
    /// Limits of what these figures show.
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

impl Wait {
    /// What was counted of a wait.
    pub(super) fn counted((name, delta): (&str, &Delta)) -> Self {
        Self {
            name: name.into(),
            class: String::new(),
            stage: delta.fact("stage"),
            count: delta.counter("count"),
            time_s: delta.counter("sum_ns") / 1e9,
            buckets: buckets(&delta.counters).into_iter().filter(|(_, n)| *n > 0).collect(),
        }
    }
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

impl Period {
    /// A row of the load profile more, with its name, unit and total, if that is known.
    pub(super) fn add_load(&mut self, (name, unit, total): (&str, &str, Option<f64>)) {
        self.load.extend(total.map(|total| Load { name: name.into(), total, unit: unit.into() }));
    }

    /// A ratio more, if both parts of it are known, and the whole is not zero.
    pub(super) fn add_ratio(&mut self, name: &str, part: Option<f64>, whole: Option<f64>) {
        if let (Some(part), Some(whole)) = (part, whole.filter(|w| *w > 0.0)) {
            self.efficiency.push((name.into(), part * 100.0 / whole));
        }
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
}
