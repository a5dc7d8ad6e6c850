//! Clock readings at stage borders, and the lane they are recorded in.

use seawall_stats::{Class, Event, ticks};

use super::attach::Engine;
use crate::Owner;

impl Engine {
    /// Nanoseconds since a reading of [`ticks`].
    #[inline]
    pub(super) fn since(&self, start: u64) -> u64 {
        self.ns(ticks().wrapping_sub(start))
    }

    /// Nanoseconds of this many ticks.
    #[inline]
    pub(super) fn ns(&self, ticks: u64) -> u64 {
        self.clock.ns(ticks)
    }

    /// Records how long a sync waited for a journal: in all, and how much of that its own writes to the device took.
    pub(super) fn waited(&self, who: Owner, class: Class, ns: u64, device_ns: u64) {
        if let Some(op) = self.log.claim(who) {
            let stats = self.log.shm.stats(op.lane());
            stats.record(Event::LogFileSync, class, ns);
            if device_ns != 0 {
                stats.record(Event::LogFileParallelWrite, class, device_ns);
            }
        }
    }

    /// Records a wait outside an operation, by claiming a lane for it. For slow paths only.
    #[cold]
    pub(super) fn record(&self, who: Owner, event: Event, class: Class, ns: u64) {
        if let Some(op) = self.log.claim(who) {
            self.log.shm.stats(op.lane()).record(event, class, ns);
        }
    }
}
