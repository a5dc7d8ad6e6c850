//! A program under full load under `seawall run`, with its acknowledged commits in a ledger.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::waiting::{LIMIT, wait_for_commits};
use crate::process::{self, Running, start_captured};

/// The program, and what writes to it if that is another one.
pub struct ProgramLoad {
    launcher: Running,
    program: PathBuf,
    ledger: PathBuf,
    client: Option<Running>,
}

impl ProgramLoad {
    /// Starts `command`, which runs `program`.
    pub(super) fn start(command: Command, program: &Path, ledger: &Path) -> Result<Self> {
        let what = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let program =
            fs::canonicalize(program).with_context(|| format!("cannot find {}", program.display()))?;
        let launcher = start_captured(command, &what, libc::SIGTERM)?;
        Ok(Self::of(launcher, program, ledger, None))
    }

    /// A program that was started, and its client.
    pub(super) fn of(launcher: Running, program: PathBuf, ledger: &Path, client: Option<Running>) -> Self {
        Self { launcher, program, ledger: ledger.to_owned(), client }
    }

    /// Waits until this many more commits were acknowledged.
    pub fn wait_for_commits(&self, more: usize) -> Result<()> {
        wait_for_commits(&self.ledger, more)
    }

    /// The program's own processes.
    fn processes(&self) -> Result<Vec<u32>> {
        let mut all = process::descendants(self.launcher.pid());
        all.push(self.launcher.pid()); // a launcher may become its command
        all.retain(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == self.program));
        ensure!(!all.is_empty(), "the load ended before it was killed");
        Ok(all)
    }

    /// Kills the program alone, in the middle of what it does; returns how many processes there were.
    pub fn kill(self) -> Result<usize> {
        let all = self.processes()?;
        process::kill_and_wait(&all, LIMIT)?;
        self.end()?; // it drains, and ends
        Ok(all.len())
    }

    /// Kills the program, the launcher and these processes of Seawall's in the same instant: nobody can tidy up.
    pub fn kill_with(self, others: &[u32]) -> Result<usize> {
        // The launcher goes first: one that sees the daemon die starts another.
        let mut all = vec![self.launcher.pid()];
        all.extend(others);
        all.extend(self.processes()?);
        process::kill_and_wait(&all, LIMIT)?;
        self.end()?;
        Ok(all.len())
    }

    fn end(self) -> Result<()> {
        self.launcher.wait_for(LIMIT)?;
        self.client.map_or(Ok(()), |client| client.wait_for(LIMIT).map(drop))
    }
}
