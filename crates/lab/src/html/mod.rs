//! The demo's page. Stub.
use crate::demo::DemoReport;
pub fn page(_: &DemoReport) -> String {
    String::new()
}
