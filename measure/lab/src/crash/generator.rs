//! The larger load generators on a server that is killed: what each has noted as acknowledged must be there.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::waiting::{LIMIT, verdict};
use crate::lab::Lab;
use crate::mariadb::Server;
use crate::pg::Cluster;
use crate::process::{Running, run, start_captured, wait_until};

/// A load generator of `seawall-load`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// The SLOB method: every update changes all columns.
    Slob,
    /// The TPROC-C-like mix.
    Tprocc,
}

/// Small: loaded in seconds.
const SLOB: [&str; 4] = ["--scale", "1000", "--set", "SCAN_TABLE_SZ=8"];
const SLOB_RUN: [&str; 8] =
    ["--set", "UPDATE_PCT=80", "--set", "REDO_STRESS=HEAVY", "--threads", "4", "--set", "RUN_TIME=60"];
const TPROCC: [&str; 6] = ["--warehouses", "2", "--items", "1000", "--customers", "300"];
const TPROCC_RUN: [&str; 4] = ["--users", "4", "--seconds", "60"];

/// How a server is named to `seawall-load`.
pub trait Reached {
    /// Its options.
    fn options(&self) -> Vec<String>;
}

impl Reached for Cluster<'_> {
    fn options(&self) -> Vec<String> {
        ["--database", "postgres", "--connect", &self.connection()].map(str::to_owned).to_vec()
    }
}

impl Reached for Server<'_> {
    fn options(&self) -> Vec<String> {
        let socket = self.socket().display().to_string();
        ["--database", "mariadb", "--socket", &socket].map(str::to_owned).to_vec()
    }
}

impl Generator {
    /// Loads its tables and begins its ledger.
    pub fn set_up(self, lab: &Lab, server: &impl Reached, ledger: &Path) -> Result<()> {
        let sizes: &[&str] = if self == Generator::Slob { &SLOB } else { &TPROCC };
        let mut setup = self.command(lab, server, "setup", ledger);
        setup.args(sizes);
        run(setup, &format!("{self:?} setup")).map(drop)
    }

    /// Starts it, at work until the server is gone.
    pub fn start(self, lab: &Lab, server: &impl Reached, ledger: &Path) -> Result<GeneratorLoad> {
        let mut load = self.command(lab, server, "run", ledger);
        match self {
            Generator::Slob => load.args(SLOB).args(SLOB_RUN),
            Generator::Tprocc => load.args(TPROCC_RUN),
        };
        let load = start_captured(load, &format!("{self:?}"), libc::SIGTERM)?;
        Ok(GeneratorLoad { load, ledger: ledger.to_owned() })
    }

    /// Its check on a running server: a `CheckReport` of this generator's.
    pub fn check<T: DeserializeOwned>(self, lab: &Lab, server: &impl Reached, ledger: &Path) -> Result<T> {
        let check = self.command(lab, server, "check", ledger);
        verdict(check, &format!("{self:?} check"))
    }

    fn command(self, lab: &Lab, server: &impl Reached, what: &str, ledger: &Path) -> Command {
        let name = if self == Generator::Slob { "slob" } else { "tprocc" };
        let mut command = lab.command(&lab.tools.load);
        command.args([name, what, "--json"]).args(server.options()).arg("--ledger").arg(ledger);
        command
    }
}

/// A generator at work.
pub struct GeneratorLoad {
    load: Running,
    ledger: PathBuf,
}

impl GeneratorLoad {
    /// Waits until so many more lines are in the ledger.
    pub fn wait_for_lines(&self, more: usize) -> Result<()> {
        let lines = || -> Result<usize> {
            Ok(std::fs::read(&self.ledger)?.iter().filter(|byte| **byte == b'\n').count())
        };
        let wanted = lines()? + more;
        wait_until(&format!("{more} acknowledged operations"), LIMIT, || Ok(lines()? >= wanted))
    }

    /// Waits for its end: it lost its connections, says so, and still tells what it had done.
    pub fn end(self) -> Result<()> {
        #[derive(Deserialize)]
        struct Outcome {
            errors: Vec<String>,
            latency: seawall_load::latency::Summary,
        }
        let ended = self.load.wait_for(LIMIT)?;
        ensure!(
            ended.status.code() == Some(1),
            "the load ended with {}: {}",
            ended.status,
            ended.stderr.trim()
        );
        let outcome: Outcome = serde_json::from_slice(&ended.stdout)?;
        ensure!(outcome.latency.ops > 0, "the load did nothing before the kill");
        ensure!(
            outcome.errors.iter().any(|error| error.contains("connection lost")),
            "the load does not say that it lost the server: {:?}",
            outcome.errors
        );
        Ok(())
    }
}
