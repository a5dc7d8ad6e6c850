//! What loads and checks wait for, and how long.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use seawall_load::ledger::{self, Verdict};

use crate::process::{self, Ended};

/// Nothing that is waited for here takes longer, however busy the machine is.
pub const LIMIT: Duration = Duration::from_secs(60);

/// What a check said. Exit code 1 is a verdict too (a bad one); anything else is a check that could not run.
pub fn verdict(ended: Ended) -> Result<Verdict> {
    ensure!(matches!(ended.status.code(), Some(0 | 1)), "the check could not run: {}", ended.stderr.trim());
    serde_json::from_slice(&ended.stdout).with_context(|| format!("the check said: {}", ended.stderr.trim()))
}

/// How many commits the ledger holds; none while it does not exist.
fn acknowledged(ledger: &Path) -> Result<usize> {
    if ledger.exists() { Ok(ledger::read(ledger)?.len()) } else { Ok(0) }
}

/// Waits until the ledger has grown by this many commits.
pub fn wait_for_commits(ledger: &Path, more: usize) -> Result<()> {
    let wanted = acknowledged(ledger)? + more;
    let end = Instant::now() + LIMIT;
    while acknowledged(ledger)? < wanted {
        ensure!(Instant::now() < end, "no {more} commits within {} s", LIMIT.as_secs());
        process::pause(Duration::from_millis(20))?;
    }
    Ok(())
}
