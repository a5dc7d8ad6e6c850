//! Histograms of waits: four buckets an octave from 1 ns up, a count and a sum; sub-microsecond is normal here.

use core::sync::atomic::Ordering::Relaxed;

use seawall_media::Region;

use crate::class::Class;
use crate::event::{EVENTS, Event};

const SUB_BITS: u32 = 2;
/// Buckets of one histogram: four an octave up to 2³⁶ ns (69 s), the last one open.
const BUCKETS: usize = 36 << SUB_BITS;
/// Count, sum, longest, then the buckets.
const WORDS: usize = 3 + BUCKETS;
pub(crate) const HISTOGRAM_BYTES: usize = WORDS * 8;

/// Bytes of one lane's block: one histogram per class of file and event, rounded to whole lines.
pub const BLOCK_BYTES: usize = (HISTOGRAM_BYTES * EVENTS.len() * Class::ALL.len()).next_multiple_of(64);

/// Where a histogram lies in a block. A class's histograms lie together: a lane that writes to the log only
/// touches no other class's memory.
#[inline]
const fn offset(event: Event, class: Class) -> usize {
    (class as usize * EVENTS.len() + event as usize) * HISTOGRAM_BYTES
}

/// One writer's histograms at an offset of the shared memory.
#[derive(Clone, Copy)]
pub struct Block<'a> {
    region: &'a Region,
    at: usize,
}

impl<'a> Block<'a> {
    /// The block at `at`, [`BLOCK_BYTES`] long.
    pub fn new(region: &'a Region, at: usize) -> Self {
        Self { region, at }
    }

    /// Adds one wait. Only the block's owner calls this, so load and store need not be one operation.
    #[inline]
    pub fn record(&self, event: Event, class: Class, ns: u64) {
        let at = self.at + offset(event, class);
        self.add(at, 1);
        self.add(at + 8, ns);
        let longest = self.region.u64(at + 16);
        if ns > longest.load(Relaxed) {
            longest.store(ns, Relaxed);
        }
        self.add(at + 24 + bucket(ns) * 8, 1);
    }

    /// Adds one wait to a block that others may write too, of a caller that has no lane. An owner's own wait that is
    /// recorded at the same moment may get lost.
    #[inline]
    pub fn record_shared(&self, event: Event, class: Class, ns: u64) {
        record_shared(self.region, self.at + offset(event, class), ns);
    }

    /// Counts an event whose duration is not worth a clock reading.
    #[inline]
    pub fn count(&self, event: Event, class: Class) {
        self.add(self.at + offset(event, class), 1);
    }

    #[inline]
    fn add(&self, at: usize, n: u64) {
        let word = self.region.u64(at);
        word.store(word.load(Relaxed).wrapping_add(n), Relaxed);
    }
}

/// Adds one wait to the histogram at an offset, which several may write at the same moment.
#[inline]
pub(crate) fn record_shared(region: &Region, at: usize, ns: u64) {
    let add = |at: usize, n: u64| region.u64(at).fetch_add(n, Relaxed);
    add(at, 1);
    add(at + 8, ns);
    if ns > region.u64(at + 16).load(Relaxed) {
        region.u64(at + 16).fetch_max(ns, Relaxed);
    }
    add(at + 24 + bucket(ns) * 8, 1);
}

/// The sum of one event over several blocks.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How many waits.
    pub count: u64,
    /// Nanoseconds of all of them.
    pub sum_ns: u64,
    /// The longest, in nanoseconds.
    pub longest_ns: u64,
    buckets: [u64; BUCKETS],
}

impl Summary {
    /// An empty sum.
    pub const fn new() -> Self {
        Self { count: 0, sum_ns: 0, longest_ns: 0, buckets: [0; BUCKETS] }
    }

    /// Adds one block's histogram of `event` on files of `class`.
    pub fn add(&mut self, block: Block<'_>, event: Event, class: Class) {
        self.add_at(block.region, block.at + offset(event, class));
    }

    pub(crate) fn add_at(&mut self, region: &Region, at: usize) {
        let word = |i: usize| region.u64(at + i * 8).load(Relaxed);
        self.count += word(0);
        self.sum_ns += word(1);
        self.longest_ns = self.longest_ns.max(word(2));
        for (i, bucket) in self.buckets.iter_mut().enumerate() {
            *bucket += word(3 + i);
        }
    }

    /// The lower border, in ns, of the bucket that holds quantile `q` (0 to 1) of the timed waits.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        let timed: u64 = self.buckets.iter().sum();
        let wanted = (q * timed as f64) as u64;
        let mut seen = 0;
        for (i, n) in self.buckets.iter().enumerate() {
            seen += n;
            if seen > wanted {
                return bucket_floor_ns(i);
            }
        }
        self.longest_ns
    }

    /// Bucket counts, smallest first; their lower borders are [`bucket_floor_ns`].
    pub fn buckets(&self) -> &[u64] {
        &self.buckets
    }

    /// The buckets that are not empty: the lower border of each in ns, and how many are in it.
    #[cfg(feature = "std")]
    pub fn filled(&self) -> std::vec::Vec<(u64, u64)> {
        let all = self.buckets.iter().enumerate();
        all.filter(|(_, n)| **n > 0).map(|(i, n)| (bucket_floor_ns(i), *n)).collect()
    }
}

impl Default for Summary {
    fn default() -> Self {
        Self::new()
    }
}

#[inline]
fn bucket(ns: u64) -> usize {
    let floor = ns.max(1 << SUB_BITS);
    let octave = floor.ilog2();
    let sub = (floor >> (octave - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
    ((((octave - SUB_BITS) as usize) << SUB_BITS) + sub).min(BUCKETS - 1)
}

/// The shortest wait, in ns, that falls into bucket `i`.
pub const fn bucket_floor_ns(i: usize) -> u64 {
    let octave = i as u32 >> SUB_BITS;
    let sub = i as u64 & ((1 << SUB_BITS) - 1);
    ((1 << SUB_BITS) | sub) << octave
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_begins_where_it_says() {
        for i in 0..BUCKETS {
            assert_eq!(bucket(bucket_floor_ns(i)), i);
            assert_eq!(bucket(bucket_floor_ns(i + 1) - 1), i);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(bucket(0), 0);
    }

    #[test]
    fn every_event_of_every_class_moves_its_own_summary_only() {
        let file = tempfile::tempfile_in("/dev/shm").expect("a temporary file");
        file.set_len(BLOCK_BYTES as u64).expect("room");
        let region = Region::map(&file, BLOCK_BYTES as u64, false).expect("a mapping");
        let block = Block::new(&region, 0);
        let all = || {
            Class::ALL.into_iter().flat_map(|class| EVENTS.iter().map(move |row| (class, row))).zip(0u64..)
        };
        for ((class, row), i) in all() {
            match i % 2 {
                0 => block.record(row.event, class, 1000 + i),
                _ => block.record_shared(row.event, class, 1000 + i),
            }
        }
        for ((class, row), i) in all() {
            let mut summary = Summary::new();
            summary.add(block, row.event, class);
            assert_eq!((summary.count, summary.sum_ns), (1, 1000 + i), "{} of {class:?}", row.name);
            assert!(summary.quantile_ns(0.5) <= 1000 + i && summary.quantile_ns(0.5) > 750);
        }
    }
}
