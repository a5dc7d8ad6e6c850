//! What every load asks a PostgreSQL server.

use anyhow::{Result, ensure};
use postgres::Client;
use postgres::error::SqlState;

use crate::counters::Counters;

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
