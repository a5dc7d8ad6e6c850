//! Stub.
pub fn run(_: &crate::cli::BenchOptions) -> anyhow::Result<()> {
    Ok(())
}
