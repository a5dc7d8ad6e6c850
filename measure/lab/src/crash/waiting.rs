//! What loads and checks wait for, and how long.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use seawall_load::ledger::{self, Verdict};
use serde::de::DeserializeOwned;

use crate::process::{self, Running, start_captured};

/// Nothing that is waited for here takes longer, however busy the machine is.
pub const LIMIT: Duration = Duration::from_secs(60);

/// What a check says. Exit code 1 is a verdict too (a bad one); anything else is a check that could not run.
pub fn verdict<T: DeserializeOwned>(check: Command, what: &str) -> Result<T> {
    let ended = start_captured(check, what, libc::SIGTERM)?.wait()?;
    let said = ended.stderr.trim();
    ensure!(matches!(ended.status.code(), Some(0 | 1)), "{what} failed: {said}");
    serde_json::from_slice(&ended.stdout).with_context(|| format!("{what} printed no verdict: {said}"))
}

/// Compares a ledger with a database, by the load's check of this name; `options` say where the database is.
pub fn compared(mut check: Command, name: &str, options: &[&str], ledger: &Path) -> Result<Verdict> {
    check.arg(name).args(options).arg("--ledger").arg(ledger);
    verdict(check, name)
}

/// How many commits the ledger holds; none while it does not exist.
fn acknowledged(ledger: &Path) -> Result<usize> {
    if ledger.exists() { Ok(ledger::read(ledger)?.len()) } else { Ok(0) }
}

/// Waits until the ledger has grown by this many commits.
pub fn wait_for_commits(ledger: &Path, more: usize) -> Result<()> {
    let wanted = acknowledged(ledger)? + more;
    process::wait_until(&format!("{more} commits"), LIMIT, || Ok(acknowledged(ledger)? >= wanted))
}

/// Clients that note each commit as soon as it was acknowledged, at work until the server is gone.
pub struct Commits {
    clients: Running,
    ledger: PathBuf,
}

impl Commits {
    /// Starts them; the ledger goes on where an earlier load on the same database ended.
    pub fn start(mut clients: Command, ledger: &Path) -> Result<Self> {
        clients.args(["--seconds", &LIMIT.as_secs().to_string()]).arg("--ledger").arg(ledger);
        let clients = start_captured(clients, "the ledger load", libc::SIGTERM)?;
        Ok(Self { clients, ledger: ledger.to_owned() })
    }

    /// Waits until this many more commits were acknowledged.
    pub fn wait_for(&self, more: usize) -> Result<()> {
        wait_for_commits(&self.ledger, more)
    }

    /// What they report in the end: they lost their connections.
    pub fn end<T: DeserializeOwned>(self) -> Result<T> {
        Ok(serde_json::from_slice(&self.clients.wait_for(LIMIT)?.success("the ledger load")?)?)
    }
}
