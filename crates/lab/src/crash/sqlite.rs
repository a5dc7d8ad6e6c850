//! A SQLite program under full load, noting its commits in a ledger.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use seawall_load::ledger::Verdict;
use seawall_load::sqlite::Journal;

use super::LIMIT;
use crate::lab::Lab;
use crate::process::{self, Running, start_captured};
use crate::side::{self, Preset, Side};
use crate::sqlite::{self, Shape};

/// The program under `seawall run`, on a database of its own.
pub struct SqliteLoad {
    launcher: Running,
    program: PathBuf,
    ledger: PathBuf,
}

impl SqliteLoad {
    /// Starts it on an empty database, so that the ledger is complete.
    pub fn start(lab: &Lab, journal: Journal, ledger: &Path) -> Result<Self> {
        sqlite::create(lab, Side::Seawall, journal)?;
        let shape = Shape { journal, seconds: LIMIT.as_secs_f64() };
        let command = sqlite::load(lab, Side::Seawall, shape, Some(ledger))?;
        let launcher = start_captured(command, "the SQLite program", libc::SIGTERM)?;
        Ok(SqliteLoad { launcher, program: lab.tools.load.clone(), ledger: ledger.to_owned() })
    }

    /// Waits until this many more commits were acknowledged.
    pub fn wait_for_commits(&self, more: usize) -> Result<()> {
        super::wait_for_commits(&self.ledger, more)
    }

    /// The program's own processes.
    fn processes(&self) -> Result<Vec<u32>> {
        let program = self.program.to_string_lossy();
        let mut all = process::descendants(self.launcher.pid());
        all.push(self.launcher.pid()); // a launcher may become its command
        all.retain(|&pid| process::command_line(pid).starts_with(&*program));
        ensure!(!all.is_empty(), "the SQLite load ended before it was killed");
        Ok(all)
    }

    /// Kills the program alone, in the middle of what it does; returns how many processes there were.
    pub fn kill(self) -> Result<usize> {
        let all = self.processes()?;
        kill_and_wait(&all)?;
        self.launcher.wait_for(LIMIT)?; // it drains, and ends
        Ok(all.len())
    }

    /// Kills the program, Seawall's daemon and the launcher in the same instant: nobody can tidy up.
    pub fn kill_with(self, daemon: u32) -> Result<usize> {
        let mut all = self.processes()?;
        all.extend([daemon, self.launcher.pid()]);
        kill_and_wait(&all)?;
        self.launcher.wait_for(LIMIT)?;
        Ok(all.len())
    }
}

fn kill_and_wait(all: &[u32]) -> Result<()> {
    all.iter().for_each(|&pid| process::signal(pid, libc::SIGKILL));
    let end = Instant::now() + LIMIT;
    while all.iter().any(|&pid| process::is_alive(pid)) {
        process::reap_orphans();
        if Instant::now() > end {
            bail!("a killed process did not end");
        }
        process::pause(Duration::from_millis(5))?;
    }
    Ok(())
}

/// Compares ledger and database, opening it as `side` does.
pub fn check_sqlite(lab: &Lab, side: Side, journal: Journal, ledger: &Path) -> Result<Verdict> {
    // The database is always the one Seawall's load worked on.
    let dir = sqlite::dir(lab, Side::Seawall, journal);
    let db = dir.join("bank.db");
    let args =
        ["check-sqlite".as_ref(), "--db".as_ref(), db.as_os_str(), "--ledger".as_ref(), ledger.as_os_str()];
    let check = side::command(lab, side, Preset::Sqlite, &dir, &lab.tools.load, args)?;
    super::verdict(start_captured(check, "the SQLite check", libc::SIGTERM)?.wait()?)
}
