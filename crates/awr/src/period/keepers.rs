//! The keepers' part of a period.

use serde::{Deserialize, Serialize};

use super::figures::Wait;
use crate::delta::{Delta, Deltas};
use crate::keepers::{KEEPER, KEEPERS};
use crate::seawall::buckets;

/// Who kept the log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Keepers {
    /// What it survives, in words.
    pub survives: String,
    /// Why nothing was written any more at the end; empty: it was.
    pub over: String,
    /// How many confirm a commit before it is acknowledged.
    pub acks: f64,
    /// How many counted at the end.
    pub counting: f64,
    /// For how many seconds fewer than that counted.
    pub short_s: f64,
    /// How often that began.
    pub short_times: f64,
    /// Each of them.
    pub each: Vec<Keeper>,
}

/// One keeper.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Keeper {
    /// Where it is.
    pub address: String,
    /// What it was at the end.
    pub role: String,
    /// What was wrong last; empty: nothing.
    pub trouble: String,
    /// It has no data.
    pub is_witness: bool,
    /// It confirms only what its disk has.
    pub affirms: bool,
    /// How long it took to confirm batches.
    pub round_trips: Wait,
    /// Bytes that were sent to it.
    pub sent: f64,
    /// How often it was connected to again.
    pub reconnects: f64,
    /// Batches that it lacked at the end.
    pub behind: f64,
    /// Bytes of them.
    pub behind_bytes: f64,
}

/// Their part, if other hosts kept the log.
pub fn part(deltas: &Deltas) -> Option<Keepers> {
    let (_, all) = deltas.of(KEEPERS).next()?;
    Some(Keepers {
        survives: fact(all, "survives"),
        over: fact(all, "over"),
        acks: gauge(all, "acks"),
        counting: gauge(all, "counting"),
        short_s: counter(all, "short_s"),
        short_times: counter(all, "short_times"),
        each: deltas.of(KEEPER).map(keeper).collect(),
    })
}

fn keeper((address, delta): (&str, &Delta)) -> Keeper {
    let round_trips = Wait {
        name: "round trip".into(),
        count: counter(delta, "count"),
        time_s: counter(delta, "sum_ns") / 1e9,
        buckets: buckets(&delta.counters),
        ..Wait::default()
    };
    Keeper {
        address: address.into(),
        role: fact(delta, "role"),
        trouble: fact(delta, "trouble"),
        is_witness: fact(delta, "witness") == "yes",
        affirms: fact(delta, "affirms") == "yes",
        round_trips,
        sent: counter(delta, "sent_bytes"),
        reconnects: counter(delta, "reconnects"),
        behind: gauge(delta, "behind"),
        behind_bytes: gauge(delta, "behind_bytes"),
    }
}

fn fact(delta: &Delta, name: &str) -> String {
    delta.facts.get(name).cloned().unwrap_or_default()
}

fn gauge(delta: &Delta, name: &str) -> f64 {
    delta.gauges.get(name).copied().unwrap_or(0.0)
}

fn counter(delta: &Delta, name: &str) -> f64 {
    delta.counters.get(name).copied().unwrap_or(0.0)
}
