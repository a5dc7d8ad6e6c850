//! What a snapshot is made of.
//!
//! Everything that was read, whatever it was read from, is a [`Reading`]: numbers that only grow
//! (counters), numbers that do not (gauges), and words (facts). What follows (deltas, storage, export) is
//! written once, for readings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One look at one thing: a view's row, a file, a disk, a wait event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Which source: `pg_stat_database`, `disk`, `seawall event` …
    pub kind: String,
    /// Which one of its kind.
    pub item: String,
    /// Changes when the counters begin again from zero; the counters of two epochs are not subtracted.
    pub epoch: String,
    /// Only ever grow within an epoch.
    pub counters: BTreeMap<String, f64>,
    /// As they are at this instant.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<String, f64>,
    /// Words that rarely change: names, settings, texts of statements.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
}

impl Reading {
    /// An empty reading.
    pub fn new(kind: &str, item: impl Into<String>, epoch: impl Into<String>) -> Self {
        Self { kind: kind.into(), item: item.into(), epoch: epoch.into(), ..Self::default() }
    }

    /// The same with a counter more.
    #[must_use]
    pub fn counter(mut self, name: &str, value: f64) -> Self {
        self.counters.insert(name.into(), value);
        self
    }

    /// The same with a gauge more.
    #[must_use]
    pub fn gauge(mut self, name: &str, value: f64) -> Self {
        self.gauges.insert(name.into(), value);
        self
    }

    /// The same with a fact more.
    #[must_use]
    pub fn fact(mut self, name: &str, value: impl Into<String>) -> Self {
        self.facts.insert(name.into(), value.into());
        self
    }
}

/// A source that was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Kind of its readings.
    pub kind: String,
    /// All items it has are in the snapshot: one that was absent earlier is new.
    pub complete: bool,
}

/// When, on three clocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Instant {
    /// Wall clock: milliseconds since 1970. May jump.
    pub wall_ms: i64,
    /// Seconds since this boot, sleep included. Never jumps.
    pub up_s: f64,
    /// Which boot.
    pub boot_id: String,
}

/// What it cost to take the snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of this program, microseconds.
    pub cpu_us: u64,
    /// From its first question to its last answer, microseconds: how far "one instant" is from one.
    pub span_us: u64,
}

/// The database a snapshot is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// `PostgreSQL`, `MariaDB`, `Redis`, or `machine` where no database was asked.
    pub product: String,
    /// Its version.
    pub version: String,
    /// What tells it from others: PostgreSQL's system identifier, or its address.
    pub id: String,
    /// As people call it.
    pub name: String,
    /// Name of the machine that the snapshot was taken on.
    pub host: String,
}

/// Everything at one instant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Number in the repository, 0 before it has one.
    #[serde(default)]
    pub id: i64,
    /// When.
    pub at: Instant,
    /// Of what.
    pub target: Target,
    /// A word of the user's.
    #[serde(default)]
    pub label: String,
    /// The sources that were asked, and answered.
    pub sources: Vec<Source>,
    /// What they said.
    pub readings: Vec<Reading>,
    /// What could not be read, and why.
    pub notes: Vec<String>,
    /// What it cost.
    pub cost: Cost,
}

impl Snapshot {
    /// The readings of one kind.
    pub fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Reading> {
        self.readings.iter().filter(move |reading| reading.kind == kind)
    }

    /// The reading of a kind that has one item.
    pub fn one(&self, kind: &str) -> Option<&Reading> {
        self.readings.iter().find(|reading| reading.kind == kind)
    }

    /// Adds all readings of one source.
    pub fn add(&mut self, kind: &str, complete: bool, readings: Vec<Reading>) {
        self.sources.push(Source { kind: kind.into(), complete });
        self.readings.extend(readings);
    }
}

/// Sessions that were found doing the same at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Wall clock, milliseconds.
    pub at_ms: i64,
    /// A session of a client, not one of the server's own processes.
    pub foreground: bool,
    /// The database's word for the kind of wait; empty: on a CPU, or waiting for one.
    pub wait_type: String,
    /// Its word for the wait.
    pub wait_event: String,
    /// What they executed, as the database numbers statements; 0: unknown.
    pub query_id: i64,
    /// How many.
    pub sessions: u32,
}
