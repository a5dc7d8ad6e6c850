//! The tables that clients commit to, and how their transactions are found again.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use super::connection::Connection;
use super::server::told;
use crate::ledger::Entry;
use crate::ledger_load::{Checked, Client, Found, Server};
use crate::target::MariadbServer;

/// The database of all tables.
pub const DATABASE: &str = "seawall";
/// Its tables.
pub const TABLES: [&str; 3] = ["ledger", "accounts", "history"];
const ACCOUNTS: i64 = 1000;

/// Where a MariaDB is.
#[derive(Clone, Debug, Args)]
pub struct Mariadb {
    /// Where the server listens, as its user root
    #[arg(long)]
    pub socket: PathBuf,
}

/// A client that transfers.
pub struct Teller {
    connection: Connection,
    number: i32,
}

impl Mariadb {
    fn open(&self) -> Result<Connection> {
        let password = std::env::var("MYSQL_PWD").unwrap_or_default();
        let server = MariadbServer { socket: self.socket.clone(), user: "root".to_owned(), password };
        Connection::open(&server).map_err(told)
    }
}

impl Server for Mariadb {
    type Client = Teller;

    fn prepare(&self) -> Result<()> {
        let tables = format!(
            "CREATE DATABASE IF NOT EXISTS {DATABASE}; USE {DATABASE};
             CREATE TABLE IF NOT EXISTS ledger (client INT, seq BIGINT, filler VARCHAR(80), PRIMARY KEY (client, seq)) ENGINE=InnoDB;
             CREATE TABLE IF NOT EXISTS accounts (id BIGINT PRIMARY KEY, balance BIGINT) ENGINE=InnoDB;
             CREATE TABLE IF NOT EXISTS history (id BIGINT AUTO_INCREMENT PRIMARY KEY, delta BIGINT) ENGINE=InnoDB;
             INSERT IGNORE INTO accounts SELECT seq, 0 FROM seq_1_to_{ACCOUNTS}"
        );
        self.open()?.execute(&tables).map_err(told).context("cannot create the tables").map(drop)
    }

    fn connect(&self, number: i32) -> Result<(Teller, i64)> {
        let mut connection = self.open()?;
        connection.execute(&format!("USE {DATABASE}")).map_err(told)?;
        let last = format!("SELECT COALESCE(MAX(seq), 0) FROM ledger WHERE client = {number}");
        let last = connection.number(&last).map_err(told)?;
        Ok((Teller { connection, number }, last))
    }
}

impl Client for Teller {
    fn commit(&mut self, seq: i64) -> Result<()> {
        let client = self.number;
        let account = (seq * 7919 + i64::from(client) * 104_729) % ACCOUNTS + 1;
        let delta = seq % 100 - 50;
        let transaction = format!(
            "BEGIN; INSERT INTO ledger VALUES ({client},{seq},REPEAT('x',60)); \
             UPDATE accounts SET balance = balance + {delta} WHERE id = {account}; \
             INSERT INTO history (delta) VALUES ({delta}); COMMIT"
        );
        self.connection.execute(&transaction).map(drop).map_err(told)
    }
}

impl Checked for Mariadb {
    /// The rows, what MariaDB finds when it checks every row and index, and whether the sums agree.
    fn find(&self, _: &BTreeSet<i32>) -> Result<Found> {
        let mut connection = self.open()?;
        let rows = connection.numbers::<i64>(&format!("SELECT client, seq FROM {DATABASE}.ledger"))?;
        let commits = rows.iter().map(|row| Entry { client: row[0] as i32, seq: row[1] }).collect();
        let mut errors = connection.check_tables(TABLES.map(|table| format!("{DATABASE}.{table}")))?;
        let sums = connection.numbers::<i64>(&format!(
            "SELECT (SELECT SUM(balance) FROM {DATABASE}.accounts),
             (SELECT COALESCE(SUM(delta), 0) FROM {DATABASE}.history)"
        ))?;
        if sums[0][0] != sums[0][1] {
            errors.push(format!("the balances and the history differ (a torn transaction): {sums:?}"));
        }
        Ok(Found { commits, errors })
    }
}
