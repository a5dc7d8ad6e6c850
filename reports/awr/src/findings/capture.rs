//! What would make the next report say more.

use super::finding::{Finding, Kind, Sure};
use crate::period::Period;

/// Sources that are off.
pub fn what_was_not_captured(period: &Period) -> Option<Finding> {
    if period.target.product == "machine" {
        return None;
    }
    let is_off =
        |name: &str| period.settings.get(name).is_some_and(|value| value.eq_ignore_ascii_case("off"));
    let mut missing = Vec::new();
    if period.samples == 0 {
        missing.push("activity samples (`seawall snap --every 60s`), without which waits have no shares");
    }
    if is_off("track_io_timing") {
        missing.push("times of data file I/O (track_io_timing = on)");
    }
    if is_off("track_wal_io_timing") {
        missing.push("times of the log's I/O (track_wal_io_timing = on)");
    }
    if is_off("performance_schema") {
        missing.push("waits, statements and files (performance_schema = ON, restart)");
    }
    if period.statements.is_empty() && period.target.product == "PostgreSQL" {
        missing.push("statements (pg_stat_statements)");
    }
    (!missing.is_empty()).then(|| Finding {
        kind: Kind::Information,
        title: "This report could say more".into(),
        share: None,
        because: format!("Not captured: {}.", missing.join("; ")),
        action: if period.target.product == "PostgreSQL" {
            "pg_test_timing measures the cost of these settings; on most machines it is little".into()
        } else {
            String::new()
        },
        benefit: None,
        sure: Sure::High,
        sure_because: "it is not there".into(),
    })
}
