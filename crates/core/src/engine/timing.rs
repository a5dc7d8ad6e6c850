//! Clock readings at stage borders, and the lane they are recorded in.

use seawall_stats::{Event, ticks};

use super::Engine;
use crate::Owner;

impl Engine {
    /// Nanoseconds since a reading of [`ticks`].
    #[inline]
    pub(super) fn since(&self, start: u64) -> u64 {
        self.clock.ns(ticks().wrapping_sub(start))
    }

    /// Records a wait outside an operation, by claiming a lane for it. For slow paths only.
    #[cold]
    pub(super) fn record(&self, who: Owner, event: Event, ns: u64) {
        if let Some(op) = self.log.claim(who) {
            self.log.shm.stats(op.lane()).record(event, ns);
        }
    }
}
