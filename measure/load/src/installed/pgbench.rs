//! pgbench: a summary, and with `--log` a line for each transaction.

use anyhow::{Context, Result, ensure};

use super::figures::{Figures, number_after};
use crate::latency::{Recorder, Summary};

/// The summary.
pub fn read(said: &str) -> Result<Figures> {
    let failed: u64 = number_after(said, "number of failed transactions:").unwrap_or(0);
    ensure!(failed == 0, "{failed} transactions failed");
    let operations = number_after(said, "number of transactions actually processed:");
    let operations = operations.context("the output has no number of transactions")?;
    // Of a run in which no transaction ended it says no rate.
    let none = (operations == 0).then_some(0.0);
    Ok(Figures {
        per_second: number_after(said, "tps =").or(none).context("the output has no tps")?,
        operations: Some(operations),
        mean_us: number_after::<f64>(said, "latency average =").map(|ms| ms * 1e3),
        ..Figures::default()
    })
}

/// The latencies in its logs (`--log`, one file a thread): the third column is microseconds.
pub fn latencies(logs: &str) -> Result<Summary> {
    let mut recorder = Recorder::default();
    for line in logs.lines() {
        let us = line.split(' ').nth(2).and_then(|us| us.parse().ok());
        let us = us.with_context(|| format!("this is not a line of pgbench's log: {line:?}"))?;
        recorder.record(std::time::Duration::from_micros(us));
    }
    Ok(recorder.summary())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "number of transactions actually processed: 186\n\
        number of failed transactions: 0 (0.000%)\nlatency average = 10.653 ms\n\
        tps = 187.744333 (without initial connection time)\n";

    #[test]
    fn the_summary() -> Result<()> {
        let figures = read(SAID)?;
        assert_eq!(
            (figures.per_second, figures.operations, figures.mean_us),
            (187.744333, Some(186), Some(10653.0))
        );
        assert!(read(&SAID.replace(": 0 (", ": 3 (")).is_err());
        let nothing =
            "number of transactions actually processed: 0\nnumber of failed transactions: 0 (NaN%)\n";
        let figures = read(nothing)?;
        assert_eq!((figures.per_second, figures.operations), (0.0, Some(0)), "as it ends then");
        assert!(read(&nothing.replace(": 0\n", ": 7\n")).is_err());
        // Up to version 14 pgbench does not report failures.
        assert!(read(&SAID.replace("number of failed", "")).is_ok());
        Ok(())
    }

    #[test]
    fn the_log() -> Result<()> {
        let summary = latencies("0 1 17698 0 1795289250 211596\n0 2 10689 0 1795289250 222316\n")?;
        assert_eq!(summary.ops, 2);
        assert!((17_690.0..17_720.0).contains(&summary.max_us), "three digits of 17698: {}", summary.max_us);
        assert!(latencies("tps").is_err());
        Ok(())
    }
}
