//! Keepers of a test's own.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command};

use super::hosts::Host;
use super::{SEAWALL, signal, wait_for};

/// A keeper that ends with this.
pub struct Keeper {
    process: Child,
    directory: tempfile::TempDir,
    pub address: String,
    arguments: Vec<String>,
}

impl Keeper {
    pub fn start(arguments: &[&str]) -> Self {
        Self::at("127.0.0.1:0", None, arguments)
    }

    /// On this host.
    pub fn on(host: &Host, arguments: &[&str]) -> Self {
        Self::at(&format!("{}:7700", host.ip), Some(host), arguments)
    }

    fn at(listen: &str, host: Option<&Host>, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let (process, address) = spawn(&directory, host, listen, &arguments);
        Self { process, directory, address, arguments }
    }

    pub fn kill(&mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("reaped");
    }

    /// It is stopped (`STOP`), or goes on (`CONT`).
    pub fn signal(&self, name: &str) {
        signal(self.process.id().into(), name);
    }

    /// Begins anew, at the same address and in the same directory.
    pub fn again(&mut self) {
        self.again_on(None);
    }

    pub fn again_on(&mut self, host: Option<&Host>) {
        (self.process, _) = spawn(&self.directory, host, &self.address, &self.arguments);
    }

    pub fn log(&self) -> serde_json::Value {
        self.log_by(Command::new(SEAWALL))
    }

    /// The same of one on this host.
    pub fn log_on(&self, host: &Host) -> serde_json::Value {
        self.log_by(host.outside(&[SEAWALL]))
    }

    fn log_by(&self, mut command: Command) -> serde_json::Value {
        let said = command.args(["keeper", "status", "--json", &self.address]).output().expect("it runs");
        let report: serde_json::Value = serde_json::from_slice(&said.stdout).expect("a report");
        report["logs"][0].clone()
    }
}

impl Keeper {
    /// What it said since it was started last.
    pub fn stderr(&self) -> String {
        fs::read_to_string(stderr(&self.directory)).expect("read")
    }

    pub fn says(&self, words: &str) {
        wait_for("the keeper to say so", || self.stderr().contains(words));
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(
    directory: &tempfile::TempDir,
    host: Option<&Host>,
    listen: &str,
    arguments: &[String],
) -> (Child, String) {
    let log = File::create(stderr(directory)).expect("a file");
    let mut command = host.map_or_else(|| Command::new(SEAWALL), |host| host.outside(&[SEAWALL]));
    command.args(["keeper", "serve"]).arg(directory.path()).args(["--listen", listen]).args(arguments);
    let process = command.stderr(log).spawn().expect("a keeper starts");
    let address = || {
        let said = fs::read_to_string(stderr(directory)).expect("read");
        // A line that is not whole yet ends in a part of the address.
        let mut lines = said.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let line = lines.find(|line| line.contains("keeper") && line.contains(" at "))?;
        line.rsplit_once(' ').map(|(_, address)| address.to_owned())
    };
    wait_for("a keeper to say where it is", || address().is_some());
    (process, address().expect("it said so"))
}

fn stderr(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("stderr")
}
