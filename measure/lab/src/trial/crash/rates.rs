//! How fast a load was, window by window.

use crate::pg::transactions::Transaction;

/// This share of the speed before the crash counts as full.
const FULL: f64 = 0.9;

/// Commits in windows of equal length.
#[derive(Debug)]
pub struct Rates {
    /// When the first window begins, µs since 1970.
    from_us: u64,
    /// Their length, µs.
    window_us: u64,
    counts: Vec<f64>,
}

impl Rates {
    /// Of counted windows.
    pub fn new(from_us: u64, window_us: u64, counts: Vec<f64>) -> Self {
        Self { from_us, window_us, counts }
    }

    /// Of transactions, by when they ended.
    pub fn of(done: &[Transaction], window_us: u64) -> Self {
        let from_us = done.iter().map(|t| t.ended_us).min().unwrap_or(0);
        let mut counts: Vec<f64> = Vec::new();
        for t in done {
            let window = ((t.ended_us - from_us) / window_us) as usize;
            if counts.len() <= window {
                counts.resize(window + 1, 0.0);
            }
            counts[window] += 1.0;
        }
        Self { from_us, window_us, counts }
    }

    /// Transactions a second: the median of the windows, the last one (cut off) left out.
    pub fn usual(&self) -> f64 {
        let mut counts = self.counts.clone();
        if counts.len() > 1 {
            counts.pop();
        }
        counts.sort_unstable_by(f64::total_cmp);
        self.a_second(counts.get(counts.len() / 2).copied().unwrap_or(0.0))
    }

    /// Seconds from `begin_us` until the end of the first window that has full speed.
    pub fn reaches(&self, speed: f64, begin_us: u64) -> Option<f64> {
        let found = self.counts.iter().position(|&count| self.a_second(count) >= speed * FULL)?;
        let end = self.from_us + (found as u64 + 1) * self.window_us;
        Some(end.saturating_sub(begin_us) as f64 / 1e6)
    }

    fn a_second(&self, count: f64) -> f64 {
        count * 1e6 / self.window_us as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 250_000;

    fn steady(from: u64, to: u64, every: u64) -> Vec<Transaction> {
        (from..to).step_by(every as usize).map(|ended_us| Transaction { ended_us, took_us: 1 }).collect()
    }

    #[test]
    fn full_speed_is_nine_tenths_of_that_before() {
        let before = Rates::of(&steady(0, 2_000_000, 1000), WINDOW);
        assert_eq!(before.usual(), 1000.0);
        let mut after = steady(500_000, 1_000_000, 2000);
        after.extend(steady(1_000_000, 2_000_000, 1000));
        assert_eq!(Rates::of(&after, WINDOW).reaches(1000.0, 0), Some(1.25));
        assert_eq!(Rates::of(&steady(0, 1_000_000, 2000), WINDOW).reaches(1000.0, 0), None);
    }

    #[test]
    fn counted_windows_are_the_same() {
        let rates = Rates::new(3_000_000, 1_000_000, vec![10.0, 95.0, 100.0, 7.0]);
        assert_eq!(rates.usual(), 95.0);
        assert_eq!(rates.reaches(100.0, 2_000_000), Some(3.0));
    }
}
