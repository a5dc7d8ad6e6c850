//! A histogram since the last look.

use crate::seawall::quantile;

/// Buckets, each with its lower border in nanoseconds, and the sum of all in nanoseconds.
type Histogram<'a> = (&'a [(u64, u64)], u64);

/// What a histogram grew by.
pub struct Grown {
    /// Lower borders in nanoseconds, and how many are new.
    pub buckets: Vec<(u64, u64)>,
    sum_ns: u64,
}

impl Grown {
    /// What is in `now` and was not in `before`.
    pub fn of(before: Option<Histogram<'_>>, (buckets, sum_ns): Histogram<'_>) -> Self {
        let earlier = |floor: u64| {
            let found = before.and_then(|(buckets, _)| buckets.iter().find(|(f, _)| *f == floor));
            found.map_or(0, |(_, n)| *n)
        };
        let grown = buckets.iter().map(|(floor, n)| (*floor, n.saturating_sub(earlier(*floor))));
        let sum_ns = sum_ns.saturating_sub(before.map_or(0, |(_, sum_ns)| sum_ns));
        Self { buckets: grown.filter(|(_, n)| *n > 0).collect(), sum_ns }
    }

    /// How many are new.
    pub fn total(&self) -> u64 {
        self.buckets.iter().map(|(_, n)| n).sum()
    }

    /// Their mean.
    pub fn mean_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.total())
    }

    /// The lower border of the bucket that holds quantile `q` (0 to 1).
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        quantile(&self.buckets, q)
    }
}
