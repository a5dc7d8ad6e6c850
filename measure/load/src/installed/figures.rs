//! What tools say in figures, and how one is found in what they print.

use serde::{Deserialize, Serialize};

/// What a run came to. Percentiles that the tool does not tell are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "quantile and unit")]
pub struct Figures {
    /// Transactions, requests or operations a second.
    pub per_second: f64,
    /// How many there were.
    pub operations: Option<u64>,
    pub mean_us: Option<f64>,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub p999_us: Option<f64>,
    pub max_us: Option<f64>,
}

/// The number behind `name` on a line that begins with it.
pub(super) fn number_after<T: std::str::FromStr>(said: &str, name: &str) -> Option<T> {
    let rest = said.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].trim_end_matches('.').parse().ok()
}
