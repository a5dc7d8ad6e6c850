//! What a run did.

use serde::{Deserialize, Serialize};

use super::Scale;
use super::input::Kind;
use crate::counters::Counters;
use crate::latency::Summary;
use crate::pace::OpenLoop;

/// The result of a run's measured part, or of what was finished of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// `postgres`, `mariadb`.
    pub database: String,
    /// Its version, in its own words.
    pub version: String,
    /// How much there is of everything.
    pub scale: Scale,
    /// Virtual users.
    pub users: u32,
    /// Whether users typed and thought, as specified.
    pub keying: bool,
    /// Length of the measured part.
    pub seconds: f64,
    /// Transactions a minute as HammerDB counts them: all that the database says it ended. None: it was lost.
    pub tpm: Option<f64>,
    /// New orders a minute as HammerDB counts them: by what the districts' next order numbers grew.
    pub nopm: Option<f64>,
    /// Transactions that were acknowledged to users, a minute.
    pub acknowledged_per_minute: f64,
    /// The same by kind.
    pub kinds: Kinds<KindOutcome>,
    /// New orders that were rolled back, as one in a hundred should.
    pub rolled_back: u64,
    /// Bytes of redo the database wrote, whoever caused them.
    pub redo_bytes: Option<u64>,
    /// All that the database counted.
    pub counters: Counters,
    /// All transactions. In an open loop from their intended start: waiting for one's turn counts.
    pub latency: Summary,
    /// All transactions from when they were sent. The same as `latency` in a closed loop.
    pub service: Summary,
    /// The schedule, in an open loop.
    pub open_loop: Option<OpenLoop>,
    /// Transactions that were undone by a conflict (deadlock, lock timeout) and given up.
    pub conflicts: u64,
    /// What went wrong; empty when the run is whole.
    pub errors: Vec<String>,
}

impl Outcome {
    /// Whether every user worked to the end.
    pub fn is_whole(&self) -> bool {
        self.errors.is_empty()
    }
}

/// Transactions of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindOutcome {
    /// How many were acknowledged.
    pub count: u64,
    /// Their latencies.
    pub latency: Summary,
}

/// One of something for each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "their names")]
pub struct Kinds<T> {
    pub new_order: T,
    pub payment: T,
    pub order_status: T,
    pub delivery: T,
    pub stock_level: T,
}

impl<T> Kinds<T> {
    /// The one of a kind.
    pub fn of(&self, kind: Kind) -> &T {
        match kind {
            Kind::NewOrder => &self.new_order,
            Kind::Payment => &self.payment,
            Kind::OrderStatus => &self.order_status,
            Kind::Delivery => &self.delivery,
            Kind::StockLevel => &self.stock_level,
        }
    }

    /// The one of a kind, to change.
    pub fn of_mut(&mut self, kind: Kind) -> &mut T {
        match kind {
            Kind::NewOrder => &mut self.new_order,
            Kind::Payment => &mut self.payment,
            Kind::OrderStatus => &mut self.order_status,
            Kind::Delivery => &mut self.delivery,
            Kind::StockLevel => &mut self.stock_level,
        }
    }

    /// Made from each.
    pub fn map<U: Default>(&self, make: impl Fn(&T) -> U) -> Kinds<U> {
        let mut made = Kinds::default();
        Kind::ALL.into_iter().for_each(|kind| *made.of_mut(kind) = make(self.of(kind)));
        made
    }
}
