//! pgbench, and what the database acknowledged to it: kept by pgbench itself, outside of the database and of its hosts.
//!
//! Each client of each run commits rows 1, 2, 3 …, and between them transfers that must add up. pgbench notes every transaction
//! when its commit was acknowledged, and a client ends with the first one that was not. So of each client all rows up to the
//! number of those notes must be there, perhaps the one that it never heard of, and no other.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use super::database::Database;
use super::hosts::Host;
use super::wait_for;

const CLIENTS: &str = "4";
const ROWS: &str = "\\set n :n + 1\nINSERT INTO ledger VALUES (:run, :client_id, :n, repeat('x', 60));\n";
/// The numbers of its scripts.
const ROW: &str = "0";
const TRANSFER: &str = "1";

/// All runs of a campaign.
pub struct Ledger {
    directory: PathBuf,
    begun: u64,
}

/// One run, which goes on until its clients get an error.
pub struct Clients {
    run: u64,
    pgbench: Child,
}

/// What was acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acknowledged {
    pub rows: u64,
    pub transfers: u64,
}

impl Ledger {
    /// Of a database on this host, which gets its tables.
    pub fn new(directory: PathBuf, database: &Database, host: &Host) -> Self {
        fs::create_dir(&directory).expect("made");
        fs::write(directory.join("rows.sql"), ROWS).expect("written");
        let tables = database.client(host, "pgbench").args(["-i", "-q"]).stderr(Stdio::null()).status();
        assert!(tables.expect("pgbench starts").success());
        let table =
            "CREATE TABLE ledger (run int, client int, n int, filler text, PRIMARY KEY (run, client, n))";
        database.sql(host, table).expect("made");
        database.sql(host, "CREATE EXTENSION amcheck").expect("made");
        Self { directory, begun: 0 }
    }

    /// Begins a run on this host.
    pub fn begin(&mut self, database: &Database, host: &Host) -> Clients {
        self.begun += 1;
        let (run, notes) = (self.begun, self.directory.join(self.begun.to_string()));
        fs::create_dir(&notes).expect("made");
        let mut pgbench = database.client(host, "pgbench");
        pgbench.args(["-n", "-c", CLIENTS, "-T", "3600", "-D", "n=0", "-D", &format!("run={run}")]);
        pgbench.arg("-f").arg(format!("{}@3", self.directory.join("rows.sql").display()));
        pgbench.args(["-b", "tpcb-like@1", "-l", "--log-prefix"]).arg(notes.join("notes"));
        let said = File::create(self.directory.join(format!("said-{run}"))).expect("a file");
        let pgbench = pgbench.stdout(Stdio::null()).stderr(said).spawn().expect("pgbench starts");
        let clients = Clients { run, pgbench };
        clients.go_on(database, host);
        clients
    }

    /// What was acknowledged to the clients of a run that has ended, by client.
    fn acknowledged(&self, run: u64) -> BTreeMap<u64, Acknowledged> {
        let mut all = BTreeMap::<u64, Acknowledged>::new();
        for notes in fs::read_dir(self.directory.join(run.to_string())).expect("a run").flatten() {
            let text = fs::read_to_string(notes.path()).expect("its notes");
            // Client, number, how long it took, script, when.
            for note in text.lines().map(|line| line.split(' ').collect::<Vec<_>>()) {
                let of = all.entry(note[0].parse().expect("a client")).or_default();
                match note[3] {
                    ROW => of.rows += 1,
                    TRANSFER => of.transfers += 1,
                    other => panic!("script {other}"),
                }
            }
        }
        all
    }

    /// Compares what the database on this host has with what was acknowledged in all runs before `live`, which goes on: that
    /// is returned.
    pub fn check(&self, database: &Database, host: &Host, live: &Clients) -> Acknowledged {
        // The table itself: an index could remember what it lost.
        let sql = "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; \
                   SELECT run, client, count(*), max(n) FROM ledger GROUP BY 1, 2";
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let mut found = BTreeMap::new();
        for line in database.sql(host, sql).expect("it answers") {
            let row: Vec<u64> = line.split('|').map(number).collect();
            assert_eq!(
                row[2], row[3],
                "run {}, client {}: a row before its last one is missing",
                row[0], row[1]
            );
            found.insert((row[0], row[1]), row[2]);
        }
        let mut sum = Acknowledged::default();
        for run in 1..live.run {
            for (client, told) in self.acknowledged(run) {
                let there = found.remove(&(run, client)).unwrap_or(0);
                let is_right = there == told.rows || there == told.rows + 1;
                assert!(
                    is_right,
                    "run {run}, client {client}: {there} rows are there, {} were acknowledged",
                    told.rows
                );
                sum.rows += told.rows;
                sum.transfers += told.transfers;
            }
        }
        // A client without an acknowledgement may have one row.
        let untold = found.iter().find(|((run, _), there)| *run < live.run && **there > 1);
        assert_eq!(untold, None, "rows that were acknowledged to nobody");
        let sql = "SELECT (SELECT coalesce(sum(abalance), 0) FROM pgbench_accounts) = coalesce(sum(delta), 0), count(*) \
                   FROM pgbench_history";
        let answer = database.sql(host, sql).expect("it answers").concat();
        let transfers = answer.strip_prefix("t|").map(number);
        assert!(transfers >= Some(sum.transfers), "{answer} transfers, {} were acknowledged", sum.transfers);
        sum
    }
}

impl Clients {
    /// Waits until they are acknowledged more.
    pub fn go_on(&self, database: &Database, host: &Host) {
        let sql = format!("SELECT count(*) FROM ledger WHERE run = {}", self.run);
        let count = || database.sql(host, &sql)?.first()?.parse::<u64>().ok();
        let before = count();
        wait_for("clients to commit", || {
            count().zip(before.or(Some(0))).is_some_and(|(now, before)| now >= before + 40)
        });
    }

    /// True if all of them got an error.
    pub fn have_ended(&mut self) -> bool {
        self.pgbench.try_wait().expect("a child").is_some()
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        let _ = self.pgbench.kill();
        let _ = self.pgbench.wait();
    }
}
