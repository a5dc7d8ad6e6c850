//! Cells that all tables of a comparison have.

use super::comparison::percent_difference;

/// An absent value shows a dash, never zero.
pub(super) fn dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".into())
}

/// By how many percent the second value differs.
pub(super) fn difference(values: [Option<f64>; 2]) -> String {
    dash(percent_difference(values).map(|d| format!("{d:+.1}")))
}
