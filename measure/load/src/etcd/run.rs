//! The etcd ledger load.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::connection::Connection;
use super::keys::{key_of, prefix_of, value_of};
use crate::ledger::{Entry, Writer};

/// Options of `seawall-load ledger-etcd`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Where the server takes clients: `127.0.0.1:2379`
    #[arg(long)]
    pub connect: String,
    /// Connections, each with its own sequence
    #[arg(long, default_value_t = 4)]
    pub clients: u32,
    /// End after this many seconds
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Bytes of a value
    #[arg(long, default_value_t = 256)]
    pub bytes: usize,
    /// Note each acknowledged put in this file
    #[arg(long)]
    pub ledger: Option<PathBuf>,
}

/// The result of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Puts the server acknowledged.
    pub acknowledged: u64,
    /// From the first to the last.
    pub seconds: f64,
    /// Clients whose connection broke, with what they were told: expected when the server is killed.
    pub disconnects: Vec<String>,
}

/// How a client ended.
struct ClientEnd {
    acknowledged: u64,
    disconnect: Option<Error>,
}

/// Runs the load until its time is over or every connection is lost.
pub fn run(options: &Options) -> Result<Report> {
    let ledger = options.ledger.as_deref().map(Writer::open).transpose()?;
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(options.seconds);
    let ends: Vec<Result<ClientEnd>> = thread::scope(|scope| {
        let clients: Vec<_> = (1..=options.clients as i32)
            .map(|client| {
                let ledger = ledger.as_ref();
                scope.spawn(move || run_client(options, client, end, ledger))
            })
            .collect();
        clients.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(anyhow!("a client panicked")))).collect()
    });
    let seconds = begin.elapsed().as_secs_f64();
    let mut report = Report { acknowledged: 0, seconds, disconnects: Vec::new() };
    for (client, end) in ends.into_iter().enumerate() {
        let end = end?;
        report.acknowledged += end.acknowledged;
        report.disconnects.extend(end.disconnect.map(|e| format!("client {}: {e:#}", client + 1)));
    }
    Ok(report)
}

/// An error of the server's ends the client; one of the ledger's voids the whole test.
fn run_client(options: &Options, client: i32, end: Instant, ledger: Option<&Writer>) -> Result<ClientEnd> {
    let mut etcd = Connection::open(&options.connect)?;
    let mut seq = etcd.count(&prefix_of(client))?;
    let mut acknowledged = 0;
    while Instant::now() < end {
        seq += 1;
        let done = etcd.put(&key_of(client, seq), &value_of(client, seq, options.bytes));
        if let Err(error) = done {
            return Ok(ClientEnd { acknowledged, disconnect: Some(error) });
        }
        if let Some(ledger) = ledger {
            ledger.acknowledge(Entry { client, seq })?;
        }
        acknowledged += 1;
    }
    Ok(ClientEnd { acknowledged, disconnect: None })
}
