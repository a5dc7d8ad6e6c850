//! What every load asks a PostgreSQL server.

use anyhow::{Context, Result, ensure};
use postgres::error::SqlState;
use postgres::{Client, NoTls};

use crate::counters::Counters;

/// A connection, in libpq's words.
pub(crate) fn connect(how: &str) -> Result<Client> {
    Client::connect(how, NoTls).context("cannot connect to PostgreSQL")
}

/// `PostgreSQL 15.18`.
pub(crate) fn version(client: &mut Client) -> Result<String> {
    let version: String = client.query_one("SHOW server_version", &[])?.get(0);
    Ok(format!("PostgreSQL {version}"))
}

/// What the server has counted so far.
pub(crate) fn counters(client: &mut Client) -> Result<Counters> {
    let row = client.query_one(
        "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, blks_hit + blks_read, blks_read,
         xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()",
        &[],
    )?;
    let number = |column: usize| row.get::<_, Option<i64>>(column).map(|number| number as u64);
    Ok(Counters {
        redo_bytes: number(0),
        logical_reads: number(1),
        physical_reads: number(2),
        transactions: number(3),
    })
}

/// A checkpoint, so that a run begins behind what its setup wrote; left out where we may not.
pub(crate) fn checkpoint(client: &mut Client) -> Result<()> {
    match client.batch_execute("CHECKPOINT") {
        Ok(()) => Ok(()),
        Err(error) => {
            ensure!(
                error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE),
                "cannot make a checkpoint: {error}"
            );
            Ok(())
        }
    }
}

/// The four numbers that a setup has noted in a table of that name; `None`: it has not come to its end.
pub(crate) fn noted(client: &mut Client, table: &str) -> Result<Option<[u64; 4]>> {
    if !client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&table])?.get::<_, bool>(0) {
        return Ok(None);
    }
    let row = client.query_opt(&format!("SELECT * FROM {table}"), &[])?;
    Ok(row.map(|row| std::array::from_fn(|column| row.get::<_, i64>(column) as u64)))
}
