//! A comparison, as plain data: the rows of its tables, each with a value for either period.

use serde::Serialize;

use super::verdict::Verdict;
use crate::period::Period;

/// Two periods.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The first.
    pub first: Period,
    /// The second.
    pub second: Period,
    /// The load profile.
    pub load: Vec<LoadPair>,
    /// Events of either top list, by difference of their share of DB time.
    pub events: Vec<EventPair>,
    /// I/O that was timed, and the server's own processes.
    pub background: Vec<EventPair>,
    /// Settings that differ.
    pub settings: Vec<Changed>,
    /// Statements of either period, by difference of their share of DB time.
    pub statements: Vec<StatementPair>,
    /// The verdicts on it.
    pub verdicts: Vec<Verdict>,
}

/// What is known beside the two periods.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// By how many percent runs of one configuration differ, if they were repeated.
    pub spread_percent: Option<f64>,
}

/// A row of the load profile, in both periods.
#[derive(Clone, Debug, Serialize)]
pub struct LoadPair {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Per second; absent where the period lacks it.
    pub per_second: [Option<f64>; 2],
    /// Per transaction.
    pub per_transaction: [Option<f64>; 2],
}

/// An event in both periods.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EventPair {
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: String,
    /// Percent of DB time; absent where the period lacks the event.
    pub share: [Option<f64>; 2],
    /// Waits a second.
    pub waits_per_second: [Option<f64>; 2],
    /// Seconds.
    pub time_s: [Option<f64>; 2],
    /// Mean wait, in nanoseconds.
    pub mean_ns: [Option<f64>; 2],
    /// The difference of the shares is smaller than the error of sampling.
    pub within_error: bool,
}

/// A setting that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Its name.
    pub name: String,
    /// Its values; absent where it does not exist.
    pub values: [Option<String>; 2],
}

/// A statement in both periods.
#[derive(Clone, Debug, Serialize)]
pub struct StatementPair {
    /// The database's number for it.
    pub id: String,
    /// Its text.
    pub text: String,
    /// Percent of DB time; absent where the period lacks it among its longest.
    pub share: [Option<f64>; 2],
    /// Calls a second.
    pub calls_per_second: [Option<f64>; 2],
    /// Mean, in nanoseconds.
    pub mean_ns: [Option<f64>; 2],
}

/// By how many percent the second differs from the first.
pub fn percent_difference([a, b]: [Option<f64>; 2]) -> Option<f64> {
    let (a, b) = (a?, b?);
    (a != 0.0).then(|| (b - a) * 100.0 / a)
}
