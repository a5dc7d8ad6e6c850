//! A server with a twin, as the bench starts it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::lab::Lab;
use crate::launch;
use crate::process;
use crate::redis::{SETTINGS, Server, place, program};
use crate::side::{Preset, Side};

/// The longest load of a twin's data that is waited for.
const READY: Duration = Duration::from_secs(600);

/// A server, with a twin or without, whose supervisor notes how it is.
pub struct Pair {
    /// Where clients go.
    pub server: Server,
    state: PathBuf,
}

impl Pair {
    /// Starts both, and waits until the twin is ready.
    pub fn start(lab: &Lab, side: Side, data: &Path, more: &[String]) -> Result<Self> {
        let state = data.with_extension("twin");
        let _ = fs::remove_dir_all(&state);
        let redis = program()?;
        let words =
            ["twin".as_ref(), "--state".as_ref(), state.as_os_str(), "--".as_ref(), redis.as_os_str()];
        let mut command = launch::command(lab, side, Preset::Redis, data, &lab.tools.seawall, words)?;
        command.args(SETTINGS).args(more);
        place(&mut command, lab, "twin", data);
        let pair = Self { server: Server::launch(lab, "twin", command)?, state };
        pair.await_ready()?;
        Ok(pair)
    }

    /// What the supervisor told last.
    pub fn status(&self) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.state.join("status.json")).ok()?).ok()
    }

    /// Waits until the twin could take over.
    pub fn await_ready(&self) -> Result<()> {
        let is_ready = || Ok(self.status().is_some_and(|status| status["ready"] == true));
        process::wait_until("the twin is ready", READY, is_ready)
            .with_context(|| format!("the twin is not ready, its status is {:?}", self.status()))
    }

    /// The process of `primary` or `twin`.
    pub fn process(&self, name: &str) -> Result<u32> {
        let status = self.status().context("the twin has written no status")?;
        status[name]
            .as_u64()
            .and_then(|pid| pid.try_into().ok())
            .with_context(|| format!("the status names no {name}: {status}"))
    }

    /// Ends both in order.
    pub fn stop(self) -> Result<()> {
        self.server.stop()?;
        fs::remove_dir_all(&self.state).context("cannot remove the twin's state")
    }
}
