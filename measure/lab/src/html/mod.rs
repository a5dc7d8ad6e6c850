//! The demo's page: one file, no network, light and dark.
//!
//! Input: a [`DemoReport`]. Output: HTML. Nothing is computed here that is not in the report.

mod chart;
mod page;

use crate::demo::DemoReport;

/// The whole page.
pub fn page(report: &DemoReport) -> String {
    page::page(report)
}
