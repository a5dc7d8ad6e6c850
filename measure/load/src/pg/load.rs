//! The table that clients commit rows to.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use clap::Args;
use postgres::{Client, Statement};

use super::{connect, integrity};
use crate::ledger::Entry;
use crate::ledger_load::{self, Checked, Found, Server};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS seawall_ledger (
    client integer, seq bigint, filler text, PRIMARY KEY (client, seq))";

/// Where a PostgreSQL is.
#[derive(Clone, Debug, Args)]
pub struct Postgres {
    /// How to connect, e.g. `host=/run/postgresql user=postgres dbname=postgres`
    #[arg(long)]
    pub connect: String,
}

/// A client that inserts.
pub struct Inserter {
    client: Client,
    insert: Statement,
    number: i32,
}

impl Server for Postgres {
    type Client = Inserter;

    fn prepare(&self) -> Result<()> {
        connect(&self.connect)?.batch_execute(TABLE).context("cannot create the ledger table")
    }

    fn connect(&self, number: i32) -> Result<(Inserter, i64)> {
        let mut client = connect(&self.connect)?;
        client.batch_execute("SET synchronous_commit = on")?;
        let last = "SELECT coalesce(max(seq), 0) FROM seawall_ledger WHERE client = $1";
        let last = client.query_one(last, &[&number])?.get(0);
        let insert = client.prepare("INSERT INTO seawall_ledger VALUES ($1, $2, repeat('x', 60))")?;
        Ok((Inserter { client, insert, number }, last))
    }
}

impl ledger_load::Client for Inserter {
    fn commit(&mut self, seq: i64) -> Result<()> {
        self.client.execute(&self.insert, &[&self.number, &seq])?;
        Ok(())
    }
}

impl Checked for Postgres {
    /// The rows, and what amcheck says of every table and index.
    fn find(&self, _: &BTreeSet<i32>) -> Result<Found> {
        let mut client = connect(&self.connect)?;
        // The table itself, not its index: an index could remember a row the table lost.
        client.batch_execute(
            "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off",
        )?;
        let rows = client
            .query("SELECT client, seq FROM seawall_ledger", &[])
            .context("cannot read the ledger table")?;
        let commits = rows.iter().map(|row| Entry { client: row.get(0), seq: row.get(1) }).collect();
        client.batch_execute("RESET ALL")?;
        Ok(Found { commits, errors: integrity(&mut client).context("cannot check the database")? })
    }
}
