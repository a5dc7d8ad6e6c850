//! redis-benchmark with `--csv`: a head and a line for each command; figures of the first command.

use anyhow::{Context, Result};

use super::figures::Figures;

/// The first command's line.
pub fn read(said: &str) -> Result<Figures> {
    let fields = |line: &str| -> Vec<String> {
        line.split(',').map(|field| field.trim().trim_matches('"').to_owned()).collect()
    };
    let mut lines = said.lines().filter(|line| line.starts_with('"'));
    let first = fields(lines.next().context("the output has no CSV")?);
    // Before version 6.2 there is no head, and nothing but the rate.
    let (head, values) = match first.first().map(String::as_str) {
        Some("test") => (first, fields(lines.next().context("the header has no line below it")?)),
        _ => (vec!["test".to_owned(), "rps".to_owned()], first),
    };
    let value = |name: &str| -> Option<f64> {
        values.get(head.iter().position(|column| column == name)?)?.parse().ok()
    };
    let us = |name: &str| value(name).map(|ms| ms * 1e3);
    Ok(Figures {
        per_second: value("rps").context("the output has no rate")?,
        operations: None,
        mean_us: us("avg_latency_ms"),
        p50_us: us("p50_latency_ms"),
        p99_us: us("p99_latency_ms"),
        p999_us: None,
        max_us: us("max_latency_ms"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_a_head_and_without() -> Result<()> {
        let said = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\
            \"p99_latency_ms\",\"max_latency_ms\"\n\
            \"SET\",\"21739.13\",\"1.306\",\"0.144\",\"0.383\",\"7.767\",\"9.815\",\"9.959\"\n";
        let figures = read(said)?;
        assert_eq!(
            (figures.per_second, figures.p50_us, figures.max_us),
            (21739.13, Some(383.0), Some(9959.0))
        );
        assert_eq!(read("\"SET\",\"1000.5\"\n")?.per_second, 1000.5);
        Ok(())
    }
}
