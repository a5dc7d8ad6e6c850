//! Latency distributions: recorded per worker, merged across threads and processes, summarised.
//!
//! Nanoseconds inside, microseconds in results. Three significant digits, 1 ns to one hour.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// Records latencies.
#[derive(Clone)]
pub struct Recorder(Histogram<u64>);

impl Default for Recorder {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3);
        Recorder(histogram.expect("constant bounds are valid"))
    }
}

impl Recorder {
    /// Adds one operation.
    pub fn record(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(LATENCY_NS_MAX);
        self.0.saturating_record(ns);
    }

    /// Adds everything another worker recorded.
    pub fn merge(&mut self, other: &Recorder) {
        self.0.add(&other.0).expect("all recorders share their bounds");
    }

    /// The distribution as plain numbers, fit for a pipe between processes.
    pub fn to_counts(&self) -> Counts {
        let pairs = self.0.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value()));
        Counts { pairs: pairs.collect(), ns_min: self.0.min(), ns_max: self.0.max() }
    }

    /// Adds a distribution that came from another process.
    pub fn merge_counts(&mut self, counts: &Counts) {
        for &(ns, count) in &counts.pairs {
            self.0.saturating_record_n(ns.min(counts.ns_max), count);
        }
    }

    /// The figures for people and scripts.
    pub fn summary(&self) -> Summary {
        let h = &self.0;
        let us = |ns: u64| ns as f64 / 1e3;
        Summary {
            ops: h.len(),
            min_us: us(h.min()),
            p50_us: us(h.value_at_quantile(0.50)),
            p90_us: us(h.value_at_quantile(0.90)),
            p99_us: us(h.value_at_quantile(0.99)),
            p999_us: us(h.value_at_quantile(0.999)),
            max_us: us(h.max()),
            mean_us: h.mean() / 1e3,
        }
    }
}

/// A distribution as (nanoseconds, count) pairs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Value and how often it was seen.
    pub pairs: Vec<(u64, u64)>,
    /// Smallest value seen.
    pub ns_min: u64,
    /// Largest value seen.
    pub ns_max: u64,
}

/// One latency distribution, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it: quantile and unit")]
pub struct Summary {
    pub ops: u64,
    pub min_us: f64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
    pub mean_us: f64,
}

impl Summary {
    /// The head of a table of [lines](Self::line).
    pub const HEADER: &str = "latency, ms     count      p50      p90      p99    p99.9      max";

    /// One line for people, in milliseconds.
    pub fn line(&self, name: &str) -> String {
        let ms = |us: f64| format!("{:>8.3}", us / 1e3);
        let [p50, p90, p99, p999, max] =
            [self.p50_us, self.p90_us, self.p99_us, self.p999_us, self.max_us].map(ms);
        format!("{name:<12} {:>8} {p50} {p90} {p99} {p999} {max}", self.ops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_through_a_pipe_changes_nothing() {
        let mut whole = Recorder::default();
        let mut halves = [Recorder::default(), Recorder::default()];
        for i in 0..1000u64 {
            let latency = Duration::from_nanos(500 + i * i);
            whole.record(latency);
            halves[(i % 2) as usize].record(latency);
        }
        let mut merged = Recorder::default();
        for half in &halves {
            merged.merge_counts(&half.to_counts());
        }
        let (a, b) = (whole.summary(), merged.summary());
        assert_eq!((a.ops, a.p50_us, a.p99_us, a.max_us), (b.ops, b.p50_us, b.p99_us, b.max_us));
    }
}
