//! RocksDB's db_bench, one benchmark a run.

use anyhow::{Context, Result};

use super::figures::Figures;

/// From `fillrandom : 35.1 micros/op 28465 ops/sec 1.0 seconds 28465 operations; …`, and the percentiles of
/// `--histogram`.
pub fn read(said: &str) -> Result<Figures> {
    let line = said.lines().find(|line| line.contains(" micros/op ")).context("the output has no rate")?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let before = |unit: &str| -> Option<f64> {
        let at = words.iter().position(|word| word.trim_end_matches(';') == unit)?;
        words[..at].last()?.parse().ok()
    };
    Ok(Figures {
        per_second: before("ops/sec").context("the output has no rate")?,
        operations: before("operations").map(|count| count as u64),
        mean_us: after(said, "Average:"),
        p50_us: after(said, "P50:"),
        p99_us: after(said, "P99:"),
        p999_us: after(said, "P99.9:"),
        max_us: after(said, "Max:"),
    })
}

/// The word behind a word, wherever it stands: microseconds.
fn after(said: &str, name: &str) -> Option<f64> {
    let mut words = said.split_whitespace();
    words.by_ref().find(|word| *word == name)?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_and_the_percentiles() -> Result<()> {
        let rate = "Keys: 16\nfillrandom   :    3363.410 micros/op 593 ops/sec 3.364 seconds 1998 operations;    0.1 MB/s\n";
        let figures = read(rate)?;
        assert_eq!((figures.per_second, figures.operations, figures.p50_us), (593.0, Some(1998), None));
        let histogram = "Count: 1998 Average: 3363.4339  StdDev: 5298.87\nMin: 117  Median: 368.3526  Max: 53870\n\
            Percentiles: P50: 368.35 P75: 5301.39 P99: 21328.00 P99.9: 41517.00 P99.99: 53870.00\n";
        let figures = read(&format!("{rate}{histogram}"))?;
        assert_eq!((figures.p50_us, figures.p99_us), (Some(368.35), Some(21328.0)));
        assert_eq!((figures.p999_us, figures.max_us), (Some(41517.0), Some(53870.0)));
        Ok(())
    }
}
