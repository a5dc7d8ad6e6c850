//! The SQLite load's main loop.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rusqlite::{Connection, TransactionBehavior};

use super::options::{Options, Report};
use super::{anew, schema};
use crate::block::mix;
use crate::latency::Recorder;
use crate::ledger::{Entry, Writer};

/// Runs the load until its time or count is over.
pub fn run(options: &Options) -> Result<Report> {
    let mut recorder = Recorder::default();
    let took = match options.anew {
        true => anew::run(options, &mut recorder)?,
        false => transfers(options, &mut recorder)?,
    };
    let (seconds, latency) = (took.as_secs_f64(), recorder.summary());
    Ok(Report {
        journal: options.journal,
        synchronous: options.synchronous,
        sqlite_version: rusqlite::version().to_owned(),
        commits: latency.ops,
        seconds,
        tps: if seconds > 0.0 { latency.ops as f64 / seconds } else { 0.0 },
        latency,
    })
}

/// Transfers in one database. Returns how long they took.
fn transfers(options: &Options, recorder: &mut Recorder) -> Result<Duration> {
    let mut db = schema::open(options)?;
    let ledger = options.ledger.as_deref().map(Writer::open).transpose()?;
    let rows: i64 = db.query_row("SELECT count(*) FROM accounts", [], |row| row.get(0))?;
    let mut seq: i64 = db.query_row(
        "SELECT coalesce(max(seq), 0) FROM history WHERE client = ?1",
        [options.client],
        |row| row.get(0),
    )?;
    let started = Instant::now();
    let end = started + Duration::from_secs_f64(options.seconds);
    let mut now = started;
    let mut left = options.ops.unwrap_or(u64::MAX);
    while now < end && left > 0 {
        seq += 1;
        left -= 1;
        let begin = Instant::now();
        transfer(&mut db, options.client, seq, rows)
            .with_context(|| format!("cannot commit transaction {seq}"))?;
        now = Instant::now();
        recorder.record(now - begin);
        if let Some(ledger) = &ledger {
            ledger.acknowledge(Entry { client: options.client, seq })?;
        }
    }
    Ok(now - started)
}

fn transfer(db: &mut Connection, client: i32, seq: i64, rows: i64) -> rusqlite::Result<()> {
    let random = mix(seq as u64 ^ (client as u64) << 48);
    let account = (random % rows.max(1) as u64) as i64;
    let delta = (random >> 40) as i64 % 10_000 - 5_000;
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction
        .prepare_cached("UPDATE accounts SET balance = balance + ?1 WHERE id = ?2")?
        .execute((delta, account))?;
    transaction.prepare_cached("INSERT INTO history VALUES (?1, ?2, ?3, ?4, ?5)")?.execute((
        client,
        seq,
        account,
        delta,
        schema::filler(random),
    ))?;
    transaction.commit()
}
