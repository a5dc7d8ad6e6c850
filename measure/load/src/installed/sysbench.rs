//! sysbench: a summary of one percentile; with `--histogram` all of them.

use anyhow::{Context, Result, ensure};

use super::figures::{Figures, number_after};

/// The summary, and the histogram if there is one.
pub fn read(said: &str) -> Result<Figures> {
    let reconnects: u64 = number_after(said, "reconnects:").unwrap_or(0);
    ensure!(reconnects == 0, "sysbench reconnected {reconnects} times: it lost the server meanwhile");
    let line = said.lines().find_map(|line| line.trim().strip_prefix("transactions:"));
    let per_second = line.and_then(|line| line.split_once('(')?.1.split(' ').next()?.parse().ok());
    let histogram = histogram(said);
    let us = |name: &str| number_after::<f64>(said, name).map(|ms| ms * 1e3);
    Ok(Figures {
        per_second: per_second.context("the output has no rate of transactions")?,
        operations: number_after(said, "transactions:"),
        mean_us: us("avg:"),
        p50_us: quantile(&histogram, 0.50),
        p99_us: quantile(&histogram, 0.99).or_else(|| us("99th percentile:")),
        p999_us: quantile(&histogram, 0.999),
        max_us: us("max:"),
    })
}

/// Lines like `0.263 |****   17`: milliseconds and how often.
fn histogram(said: &str) -> Vec<(f64, u64)> {
    let pair = |line: &str| {
        let (ms, rest) = line.split_once('|')?;
        Some((ms.trim().parse::<f64>().ok()? * 1e3, rest.split_whitespace().last()?.parse().ok()?))
    };
    said.lines().filter_map(pair).collect()
}

fn quantile(histogram: &[(f64, u64)], quantile: f64) -> Option<f64> {
    let all: u64 = histogram.iter().map(|(_, count)| count).sum();
    let wanted = (all as f64 * quantile).ceil() as u64;
    let mut seen = 0;
    histogram.iter().find_map(|(us, count)| {
        seen += count;
        (seen >= wanted).then_some(*us)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "       value  ------------- distribution ------------- count\n\
        \n       0.100 |****************  98\n       5.000 |*  1\n      28.162 |*  1\n\
        SQL statistics:\n    queries:     555\n    transactions:      100    (550.87 per sec.)\n\
        \n    reconnects:    0      (0.00 per sec.)\nLatency (ms):\n         min:   0.16\n         avg:   3.61\n\
        \n         max:    35.52\n         95th percentile:    11.87\n";

    #[test]
    fn the_summary_and_the_histogram() -> Result<()> {
        let figures = read(SAID)?;
        assert_eq!((figures.per_second, figures.operations), (550.87, Some(100)));
        assert_eq!((figures.mean_us, figures.max_us), (Some(3610.0), Some(35520.0)));
        let all = [figures.p50_us, figures.p99_us, figures.p999_us];
        assert_eq!(all.map(|us| us.map(f64::round)), [Some(100.0), Some(5000.0), Some(28162.0)]);
        Ok(())
    }

    #[test]
    fn a_lost_server_is_no_figure() {
        assert!(read(&SAID.replace("reconnects:    0", "reconnects:    2")).is_err());
    }
}
