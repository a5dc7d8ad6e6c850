//! What amcheck says of every table and index.

use anyhow::{Context, Result};
use postgres::Client;

/// What amcheck finds wrong with any table or index of the database, and pgbench's sums.
pub(crate) fn integrity(client: &mut Client) -> Result<Vec<String>> {
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS amcheck").context("cannot load amcheck")?;
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
