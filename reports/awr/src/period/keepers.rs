//! The keepers' part of a period.

use serde::{Deserialize, Serialize};

use super::figures::Wait;
use crate::delta::{Delta, Deltas};
use crate::keepers::{KEEPER, KEEPERS};

/// The keepers of the log.
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
    /// For how many seconds this host went on without them.
    pub alone_s: f64,
    /// How often that began.
    pub alone_times: f64,
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
        survives: all.fact("survives"),
        over: all.fact("over"),
        acks: all.gauge("acks"),
        counting: all.gauge("counting"),
        short_s: all.counter("short_s"),
        short_times: all.counter("short_times"),
        alone_s: all.counter("alone_s"),
        alone_times: all.counter("alone_times"),
        each: deltas.of(KEEPER).map(keeper).collect(),
    })
}

fn keeper((address, delta): (&str, &Delta)) -> Keeper {
    Keeper {
        address: address.into(),
        role: delta.fact("role"),
        trouble: delta.fact("trouble"),
        is_witness: delta.fact("witness") == "yes",
        affirms: delta.fact("affirms") == "yes",
        round_trips: Wait::counted(("round trip", delta)),
        sent: delta.counter("sent_bytes"),
        reconnects: delta.counter("reconnects"),
        behind: delta.gauge("behind"),
        behind_bytes: delta.gauge("behind_bytes"),
    }
}
