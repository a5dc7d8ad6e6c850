//! Compares the ledger with the PostgreSQL table, and lets amcheck look at every table and index.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use postgres::{Client, NoTls};

use crate::ledger::{self, Entry, Verdict};

/// Options of `seawall-load check-pg`.
#[derive(Clone, Debug, Args)]
pub struct CheckOptions {
    /// How to connect, e.g. `host=/run/postgresql user=postgres dbname=postgres`
    #[arg(long)]
    pub connect: String,
    /// The ledger its load wrote
    #[arg(long)]
    pub ledger: PathBuf,
}

/// Every ledger line must be in the database, and the database must be sound.
pub fn check(options: &CheckOptions) -> Result<Verdict> {
    let acknowledged = ledger::read(&options.ledger)?;
    let mut client = Client::connect(&options.connect, NoTls).context("connect to PostgreSQL")?;
    // The table itself, not its index: an index could remember a row the table lost.
    client.batch_execute(
        "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off",
    )?;
    let rows =
        client.query("SELECT client, seq FROM seawall_ledger", &[]).context("read the ledger table")?;
    let found: HashSet<Entry> =
        rows.iter().map(|row| Entry { client: row.get(0), seq: row.get(1) }).collect();
    client.batch_execute("RESET ALL")?;
    let mut verdict = Verdict::compare(&acknowledged, &found);
    verdict.integrity_errors = integrity(&mut client).context("check the database")?;
    Ok(verdict)
}

/// What amcheck finds wrong with any table or index of the database, and pgbench's sums.
pub(crate) fn integrity(client: &mut Client) -> Result<Vec<String>> {
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS amcheck").context("load amcheck")?;
    let mut errors = indexes(client)?;
    errors.extend(tables(client)?);
    errors.extend(pgbench_sums(client)?);
    Ok(errors)
}

fn indexes(client: &mut Client) -> Result<Vec<String>> {
    let names = client.query(
        "SELECT c.oid::regclass::text, c.oid FROM pg_class c JOIN pg_am a ON a.oid = c.relam \
         JOIN pg_index i ON i.indexrelid = c.oid \
         WHERE a.amname = 'btree' AND c.relkind = 'i' AND c.relpersistence = 'p' AND i.indisvalid",
        &[],
    )?;
    let mut errors = Vec::new();
    for row in names {
        let (name, oid): (String, u32) = (row.get(0), row.get(1));
        // heapallindexed: every row of the table is found in the index too.
        if let Err(error) = client.execute("SELECT bt_index_check($1::oid::regclass, true)", &[&oid]) {
            errors.push(format!("index {name}: {error:#}"));
        }
    }
    Ok(errors)
}

fn tables(client: &mut Client) -> Result<Vec<String>> {
    let rows = client.query(
        "SELECT c.oid::regclass::text, v.blkno, v.msg FROM pg_class c, \
         LATERAL verify_heapam(c.oid::regclass) v \
         WHERE c.relkind IN ('r', 't', 'm') AND c.relpersistence = 'p' LIMIT 20",
        &[],
    )?;
    let describe = |row: &postgres::Row| {
        let (name, block, message): (String, i64, String) = (row.get(0), row.get(1), row.get(2));
        format!("table {name} block {block}: {message}")
    };
    Ok(rows.iter().map(describe).collect())
}

/// pgbench's own invariant: each transaction adds the same delta to an account and to the history.
fn pgbench_sums(client: &mut Client) -> Result<Vec<String>> {
    let present = client.query_one("SELECT to_regclass('pgbench_history') IS NOT NULL", &[])?;
    if !present.get::<_, bool>(0) {
        return Ok(Vec::new());
    }
    let row = client.query_one(
        "SELECT (SELECT coalesce(sum(abalance), 0)::bigint FROM pgbench_accounts), \
                (SELECT coalesce(sum(delta), 0)::bigint FROM pgbench_history)",
        &[],
    )?;
    let (balances, deltas): (i64, i64) = (row.get(0), row.get(1));
    if balances == deltas {
        return Ok(Vec::new());
    }
    Ok(vec![format!("pgbench balances add up to {balances}, its history to {deltas}: a torn transaction")])
}
