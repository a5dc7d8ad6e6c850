//! The MariaDB ledger load.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::client::{DATABASE, client};
use crate::ledger::{Entry, Writer};

/// Options of `seawall-load ledger-mariadb`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Where the server listens, as its user root
    #[arg(long)]
    pub socket: PathBuf,
    /// Connections, each with its own sequence
    #[arg(long, default_value_t = 4)]
    pub clients: i32,
    /// End after this many seconds
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Note each acknowledged commit in this file
    #[arg(long)]
    pub ledger: PathBuf,
}

/// The result of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Commits the server acknowledged.
    pub acknowledged: u64,
    /// Clients that ended before their time: expected when the server is killed.
    pub disconnects: u64,
}

const ACCOUNTS: i64 = 1000;

/// Makes the tables if they are not there, and runs the load until its time is over or the server is gone.
/// Each client goes on behind its last row.
pub fn run(options: &Options) -> Result<Report> {
    create_tables(options)?;
    let ledger = Writer::open(&options.ledger)?;
    let end = Instant::now() + Duration::from_secs_f64(options.seconds);
    let ends: Vec<Result<(u64, bool)>> = thread::scope(|scope| {
        let clients: Vec<_> = (1..=options.clients)
            .map(|number| {
                let ledger = &ledger;
                scope.spawn(move || run_client(options, number, end, ledger))
            })
            .collect();
        clients.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(anyhow!("a client panicked")))).collect()
    });
    let mut report = Report { acknowledged: 0, disconnects: 0 };
    for end in ends {
        let (acknowledged, is_disconnected) = end?;
        report.acknowledged += acknowledged;
        report.disconnects += u64::from(is_disconnected);
    }
    Ok(report)
}

fn create_tables(options: &Options) -> Result<()> {
    let tables = format!(
        "CREATE DATABASE IF NOT EXISTS {DATABASE}; USE {DATABASE};
         CREATE TABLE IF NOT EXISTS ledger (client INT, seq BIGINT, filler VARCHAR(80), PRIMARY KEY (client, seq)) ENGINE=InnoDB;
         CREATE TABLE IF NOT EXISTS accounts (id BIGINT PRIMARY KEY, balance BIGINT) ENGINE=InnoDB;
         CREATE TABLE IF NOT EXISTS history (id BIGINT AUTO_INCREMENT PRIMARY KEY, delta BIGINT) ENGINE=InnoDB;
         INSERT IGNORE INTO accounts SELECT seq, 0 FROM seq_1_to_{ACCOUNTS}"
    );
    let said = client(&options.socket).args(["--execute", &tables]).output().context("start mariadb")?;
    ensure!(said.status.success(), "create the tables: {}", String::from_utf8_lossy(&said.stderr));
    Ok(())
}

/// How many commits were acknowledged, and whether the connection was lost.
fn run_client(options: &Options, number: i32, end: Instant, ledger: &Writer) -> Result<(u64, bool)> {
    let mut session = Session::open(options)?;
    let last = format!("SELECT COALESCE(MAX(seq), 0) FROM ledger WHERE client = {number};\n");
    let Some(mut seq) = session.ask(&last) else { return Ok((0, true)) };
    let mut acknowledged = 0;
    while Instant::now() < end {
        seq += 1;
        if session.ask(&transaction(number, seq)) != Some(seq) {
            return Ok((acknowledged, true));
        }
        ledger.acknowledge(Entry { client: number, seq })?;
        acknowledged += 1;
    }
    Ok((acknowledged, false))
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

/// One client at work; it ends with its input.
struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Session {
    fn open(options: &Options) -> Result<Self> {
        let mut command = client(&options.socket);
        command.arg(DATABASE).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("start mariadb")?;
        let output = child.stdout.take().context("mariadb's output")?;
        Ok(Session { input: child.stdin.take(), output: BufReader::new(output), child })
    }

    /// Sends statements of which one returns a number. `None`: the client has ended, as it does on any error.
    fn ask(&mut self, sql: &str) -> Option<i64> {
        self.input.as_mut()?.write_all(sql.as_bytes()).ok()?;
        let mut answer = String::new();
        self.output.read_line(&mut answer).ok()?;
        answer.trim().parse().ok()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}
