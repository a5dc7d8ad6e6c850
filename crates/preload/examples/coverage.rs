//! Writes docs/COVERAGE.md from the coverage table.

#[path = "../src/coverage/mod.rs"]
#[allow(dead_code)]
mod coverage;

fn main() -> std::io::Result<()> {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/COVERAGE.md");
    std::fs::write(page, coverage::document())
}
