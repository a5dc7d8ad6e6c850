//! MariaDB under full load: each client commits transfers and notes what was acknowledged in the ledger.
//!
//! The clients are MariaDB's own, one process each, fed by a thread: a commit counts when the row that was
//! selected behind it has come back.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow, bail, ensure};
use seawall_load::ledger::{self, Entry, Verdict, Writer};

use crate::lab::Lab;
use crate::mariadb::{DATABASE, Server};
use crate::process::run;

const CLIENTS: i32 = 8;
const ACCOUNTS: i64 = 1000;
const TABLES: [&str; 3] = ["ledger", "accounts", "history"];

/// The clients, at work until the server is gone.
pub struct MariadbLoad {
    clients: Vec<JoinHandle<Result<u64>>>,
    ledger: PathBuf,
}

impl MariadbLoad {
    /// Makes the tables if they are not there, and starts the clients. Each goes on where the ledger ends.
    pub fn start(server: &Server<'_>, ledger: &Path) -> Result<Self> {
        server.sql(&format!(
            "USE {DATABASE};
             CREATE TABLE IF NOT EXISTS ledger (client INT, seq BIGINT, filler VARCHAR(80), PRIMARY KEY (client, seq)) ENGINE=InnoDB;
             CREATE TABLE IF NOT EXISTS accounts (id BIGINT PRIMARY KEY, balance BIGINT) ENGINE=InnoDB;
             CREATE TABLE IF NOT EXISTS history (id BIGINT AUTO_INCREMENT PRIMARY KEY, delta BIGINT) ENGINE=InnoDB;
             INSERT IGNORE INTO accounts SELECT seq, 0 FROM seq_1_to_{ACCOUNTS}"
        ))?;
        let clients = (1..=CLIENTS).map(|number| {
            let mut command = server.client();
            command.arg(DATABASE).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let client = command.spawn().context("start the client mariadb")?;
            let ledger = Writer::open(ledger)?;
            Ok(thread::spawn(move || commit(client, number, &ledger)))
        });
        Ok(MariadbLoad { clients: clients.collect::<Result<_>>()?, ledger: ledger.to_owned() })
    }

    /// Waits until this many more commits were acknowledged.
    pub fn wait_for_commits(&self, more: usize) -> Result<()> {
        super::wait_for_commits(&self.ledger, more)
    }

    /// Waits for the end of all clients, which lost their connections.
    pub fn end(self) -> Result<()> {
        let ends = self.clients.into_iter().map(|client| match client.join() {
            Ok(commits) => commits,
            Err(_) => Err(anyhow!("a client's thread panicked")),
        });
        let commits: u64 = ends.sum::<Result<_>>()?;
        ensure!(commits > 0, "nothing was committed before the kill");
        Ok(())
    }
}

/// Commits until the client ends, because its server did: how many were acknowledged.
fn commit(mut client: Child, number: i32, ledger: &Writer) -> Result<u64> {
    let (input, output) = (client.stdin.take(), client.stdout.take());
    let (Some(mut input), Some(output)) = (input, output) else { bail!("no pipes to the client") };
    let mut output = BufReader::new(output);
    let mut answer = String::new();
    let mut count = 0;
    let mut ask = |sql: &str| -> Option<i64> {
        answer.clear();
        input.write_all(sql.as_bytes()).ok()?;
        output.read_line(&mut answer).ok()?;
        answer.trim().parse().ok()
    };
    let last = format!("SELECT COALESCE(MAX(seq), 0) FROM ledger WHERE client = {number};\n");
    let mut seq = ask(&last).unwrap_or(0);
    loop {
        seq += 1;
        if ask(&transaction(number, seq)) != Some(seq) {
            break;
        }
        ledger.acknowledge(Entry { client: number, seq })?;
        count += 1;
    }
    drop(input);
    let _ = client.wait();
    Ok(count)
}

fn transaction(client: i32, seq: i64) -> String {
    let account = (seq * 7919 + i64::from(client) * 104_729) % ACCOUNTS + 1;
    let delta = seq % 100 - 50;
    format!(
        "BEGIN; INSERT INTO ledger VALUES ({client},{seq},REPEAT('x',60)); \
         UPDATE accounts SET balance = balance + {delta} WHERE id = {account}; \
         INSERT INTO history (delta) VALUES ({delta}); COMMIT; SELECT {seq};\n"
    )
}

/// Compares ledger and database on a running server, and asks it to check every row and index.
pub fn check_mariadb(server: &Server<'_>, ledger: &Path) -> Result<Verdict> {
    let rows = server.query(&format!("SELECT client, seq FROM {DATABASE}.ledger"))?;
    let found = rows.lines().map(entry).collect::<Result<HashSet<_>>>()?;
    let mut verdict = Verdict::compare(&ledger::read(ledger)?, &found);
    for table in TABLES {
        let said = server.query(&format!("CHECK TABLE {DATABASE}.{table} EXTENDED"))?;
        if !said.lines().all(|line| line.ends_with("status\tOK")) {
            verdict.integrity_errors.push(said);
        }
    }
    let sums = server.query(&format!(
        "SELECT (SELECT SUM(balance) FROM {DATABASE}.accounts), (SELECT SUM(delta) FROM {DATABASE}.history)"
    ))?;
    if sums.split('\t').next() != sums.split('\t').nth(1) {
        verdict.integrity_errors.push(format!("balances and history differ, a torn transaction: {sums}"));
    }
    Ok(verdict)
}

fn entry(row: &str) -> Result<Entry> {
    let (client, seq) = row.split_once('\t').with_context(|| format!("not a row of the ledger: {row:?}"))?;
    Ok(Entry { client: client.parse()?, seq: seq.parse()? })
}

/// What a stopped server's files must pass: the checksum of every page, and the binary logs, readable to their
/// ends, with every acknowledged commit in them.
pub fn check_mariadb_files(lab: &Lab, data: &Path, ledger: &Path) -> Result<Verdict> {
    for (file, range) in tablespaces(data)? {
        let mut check = lab.command("innochecksum");
        check.args(range).arg(&file);
        run(check, &format!("innochecksum {}", file.display()))?;
    }
    let mut read = lab.command("mariadb-binlog");
    read.args(["--no-defaults", "--verify-binlog-checksum"]).args(binary_logs(data)?);
    let said = run(read, "mariadb-binlog")?;
    let said = String::from_utf8_lossy(&said);
    let inserted = said.lines().filter_map(|line| line.strip_prefix("INSERT INTO ledger VALUES ("));
    let found = inserted.filter_map(|values| {
        let mut values = values.split(',');
        Some(Entry { client: values.next()?.parse().ok()?, seq: values.next()?.parse().ok()? })
    });
    Ok(Verdict::compare(&ledger::read(ledger)?, &found.collect()))
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
