//! What is counted of one keeper, in shared memory: whoever sends to it and hears its answers adds to that.

use core::sync::atomic::Ordering::Relaxed;

use seawall_media::Region;

use crate::histogram::{HISTOGRAM_BYTES, Summary, record_shared};

const SENT: usize = HISTOGRAM_BYTES;
const RECONNECTS: usize = SENT + 8;

/// The counts of one keeper at an offset of the shared memory. Several may add at the same moment.
#[derive(Clone, Copy)]
pub struct Tally<'a> {
    region: &'a Region,
    at: usize,
}

impl<'a> Tally<'a> {
    /// Bytes it takes, rounded to whole lines.
    pub const BYTES: usize = (RECONNECTS + 8).next_multiple_of(64);

    /// The tally at `at`, [`BYTES`](Self::BYTES) long.
    pub fn new(region: &'a Region, at: usize) -> Self {
        Self { region, at }
    }

    /// A batch was confirmed `ns` nanoseconds after it was sent.
    #[inline]
    pub fn answered(&self, ns: u64) {
        record_shared(self.region, self.at, ns);
    }

    /// So many bytes were sent.
    #[inline]
    pub fn sent(&self, bytes: u64) {
        self.region.u64(self.at + SENT).fetch_add(bytes, Relaxed);
    }

    /// It was connected to again, so many times, after it had been lost.
    pub fn reconnected(&self, times: u64) {
        self.region.u64(self.at + RECONNECTS).fetch_add(times, Relaxed);
    }

    /// Its round trips.
    pub fn round_trips(&self) -> Summary {
        let mut sum = Summary::new();
        sum.add_at(self.region, self.at);
        sum
    }

    /// All bytes that were sent.
    pub fn sent_bytes(&self) -> u64 {
        self.region.u64(self.at + SENT).load(Relaxed)
    }

    /// How often it was connected to again.
    pub fn reconnects(&self) -> u64 {
        self.region.u64(self.at + RECONNECTS).load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_keeper_has_its_own_counts() {
        let file = tempfile::tempfile_in("/dev/shm").expect("a temporary file");
        let len = 2 * Tally::BYTES as u64;
        file.set_len(len).expect("room");
        let region = Region::map(&file, len, false).expect("a mapping");
        let [first, second] = [0, Tally::BYTES].map(|at| Tally::new(&region, at));
        (1..=100).for_each(|i| first.answered(i * 1000));
        first.sent(700);
        second.answered(u64::MAX >> 1);
        second.reconnected(3);
        let trips = first.round_trips();
        assert_eq!((trips.count, trips.sum_ns, trips.longest_ns), (100, 5_050_000, 100_000));
        assert!((80_000..=100_000).contains(&trips.quantile_ns(0.99)), "{}", trips.quantile_ns(0.99));
        assert_eq!((first.sent_bytes(), first.reconnects()), (700, 0));
        assert_eq!((second.round_trips().count, second.sent_bytes(), second.reconnects()), (1, 0, 3));
    }
}
