//! Keepers of a test's own.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use super::SEAWALL;
use super::hosts::Host;

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
    let mut command = host.map_or_else(|| Command::new(SEAWALL), |host| host.outside(&[SEAWALL]));
    command.args(["keeper", "serve"]).arg(directory.path()).args(["--listen", listen]).args(arguments);
    let mut process = command.stderr(Stdio::piped()).spawn().expect("a keeper starts");
    let mut line = String::new();
    BufReader::new(process.stderr.take().expect("piped")).read_line(&mut line).expect("it says where");
    let address = line.trim().rsplit(' ').next().expect("an address").to_owned();
    assert!(line.contains("keeper"), "{line}");
    (process, address)
}
