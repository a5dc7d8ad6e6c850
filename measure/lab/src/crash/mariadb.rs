//! MariaDB under full load, and what its files must pass afterwards.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use seawall_load::ledger::{self, Entry, Verdict};
use seawall_load::mariadb::{DATABASE, Report, TABLES};

use super::waiting::{Commits, compared};
use crate::lab::Lab;
use crate::mariadb::Server;
use crate::process::{run, start_captured};

const CLIENTS: &str = "8";

/// The ledger load, at work until the server is gone.
pub struct MariadbLoad(Commits);

impl MariadbLoad {
    /// Starts it; it goes on where an earlier load on the same database ended.
    pub fn start(lab: &Lab, server: &Server<'_>, ledger: &Path) -> Result<Self> {
        let mut commits = lab.command(&lab.tools.load);
        commits.args(["ledger-mariadb", "--clients", CLIENTS, "--socket"]).arg(server.socket());
        Ok(MariadbLoad(Commits::start(commits, ledger)?))
    }

    /// Waits until this many more commits were acknowledged.
    pub fn wait_for_commits(&self, more: usize) -> Result<()> {
        self.0.wait_for(more)
    }

    /// Waits for its end: it lost its connections.
    pub fn end(self) -> Result<()> {
        let report: Report = self.0.end()?;
        ensure!(report.acknowledged > 0, "nothing was committed before the kill");
        ensure!(!report.disconnects.is_empty(), "the ledger load ended before the kill");
        Ok(())
    }
}

/// Compares ledger and database on a running server.
pub fn check_mariadb(lab: &Lab, server: &Server<'_>, ledger: &Path) -> Result<Verdict> {
    let socket = server.socket().display().to_string();
    compared(lab.command(&lab.tools.load), "check-mariadb", &["--socket", &socket], ledger)
}

/// What a stopped server's files must pass: the checksum of every page, and the binary logs, readable to their
/// ends (see [`read_binary_log`]), with every acknowledged commit in them.
pub fn check_mariadb_files(lab: &Lab, data: &Path, ledger: &Path) -> Result<Verdict> {
    for (file, range) in tablespaces(data)? {
        let mut check = lab.command("innochecksum");
        check.args(range).arg(&file);
        run(check, &format!("innochecksum {}", file.display()))?;
    }
    let logs = binary_logs(data)?;
    let mut said = Vec::new();
    for (i, log) in logs.iter().enumerate() {
        said.extend(read_binary_log(lab, log, i + 1 == logs.len())?);
    }
    let said = String::from_utf8_lossy(&said);
    let inserted = said.lines().filter_map(|line| line.strip_prefix("INSERT INTO ledger VALUES ("));
    let found = inserted.filter_map(|values| {
        let mut values = values.split(',');
        Some(Entry { client: values.next()?.parse().ok()?, seq: values.next()?.parse().ok()? })
    });
    Ok(Verdict::compare(&ledger::read(ledger)?, &found.collect()))
}

/// What is in a binary log. A kill may end the one that is being written within an event, with Seawall and without:
/// the next start begins another one, so only the newest must be whole.
fn read_binary_log(lab: &Lab, log: &Path, is_newest: bool) -> Result<Vec<u8>> {
    let what = format!("mariadb-binlog {}", log.display());
    let mut read = lab.command("mariadb-binlog");
    read.args(["--no-defaults", "--verify-binlog-checksum"]).arg(log);
    let ended = start_captured(read, &what, libc::SIGTERM)?.wait()?;
    let is_torn = !is_newest && ended.stderr.contains("'Event truncated'");
    if is_torn { Ok(ended.stdout) } else { ended.success(&what) }
}

/// The files with pages, and the range of pages to check: in the system tablespace all but pages 64 to 191, the
/// doublewrite buffer, whose copies a kill may leave half written, with Seawall and without.
fn tablespaces(data: &Path) -> Result<Vec<(PathBuf, Option<&'static str>)>> {
    let mut all =
        ["--end-page=63", "--start-page=192"].map(|range| (data.join("ibdata1"), Some(range))).to_vec();
    all.extend(TABLES.map(|table| (data.join(DATABASE).join(format!("{table}.ibd")), None)));
    ensure!(all.iter().all(|(file, _)| file.is_file()), "tablespaces are missing below {}", data.display());
    Ok(all)
}

fn binary_logs(data: &Path) -> Result<Vec<PathBuf>> {
    let index = std::fs::read_to_string(data.join("binlog.index"))?;
    ensure!(!index.is_empty(), "there is no binary log");
    Ok(index.lines().map(|name| data.join(name)).collect())
}
