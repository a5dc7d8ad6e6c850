//! Compares the ledger with MariaDB's table, and has MariaDB check every row and index.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::client::{DATABASE, TABLES, client};
use crate::ledger::{self, Entry, Verdict};

/// Options of `seawall-load check-mariadb`.
#[derive(Clone, Debug, Args)]
pub struct CheckOptions {
    /// Where the server listens, as its user root
    #[arg(long)]
    pub socket: PathBuf,
    /// The ledger its load wrote
    #[arg(long)]
    pub ledger: PathBuf,
}

/// Every ledger line must be in the database, and the database must be sound.
pub fn check(options: &CheckOptions) -> Result<Verdict> {
    let rows = query(&options.socket, &format!("SELECT client, seq FROM {DATABASE}.ledger"))?;
    let found = rows.lines().map(entry).collect::<Result<HashSet<_>>>()?;
    let mut verdict = Verdict::compare(&ledger::read(&options.ledger)?, &found);
    for table in TABLES {
        let said = query(&options.socket, &format!("CHECK TABLE {DATABASE}.{table} EXTENDED"))?;
        if !said.lines().all(|line| line.ends_with("status\tOK")) {
            verdict.integrity_errors.push(said);
        }
    }
    let sums = query(
        &options.socket,
        &format!(
            "SELECT (SELECT SUM(balance) FROM {DATABASE}.accounts), (SELECT COALESCE(SUM(delta), 0) FROM {DATABASE}.history)"
        ),
    )?;
    if sums.split('\t').next() != sums.split('\t').nth(1) {
        verdict.integrity_errors.push(format!("balances and history differ, a torn transaction: {sums}"));
    }
    Ok(verdict)
}

fn query(socket: &Path, sql: &str) -> Result<String> {
    let said = client(socket).args(["--execute", sql]).output().context("start mariadb")?;
    ensure!(said.status.success(), "{sql}: {}", String::from_utf8_lossy(&said.stderr).trim());
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

fn entry(row: &str) -> Result<Entry> {
    let (client, seq) = row.split_once('\t').with_context(|| format!("not a row of the ledger: {row:?}"))?;
    Ok(Entry { client: client.parse()?, seq: seq.parse()? })
}
