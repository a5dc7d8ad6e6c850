//! The Redis ledger load.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::connection::Connection;
use super::keys::{count_of, set_of};
use crate::ledger::{Entry, Writer};

/// Options of `seawall-load ledger-redis`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The server's socket
    #[arg(long)]
    pub socket: PathBuf,
    /// Connections, each with its own sequence
    #[arg(long, default_value_t = 4)]
    pub clients: u32,
    /// End after this many seconds
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Note each acknowledged transaction in this file
    #[arg(long)]
    pub ledger: PathBuf,
}

/// The result of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Transactions the server acknowledged.
    pub acknowledged: u64,
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
    let ledger = Writer::open(&options.ledger)?;
    let end = Instant::now() + Duration::from_secs_f64(options.seconds);
    let ends: Vec<Result<ClientEnd>> = thread::scope(|scope| {
        let clients: Vec<_> = (1..=options.clients as i32)
            .map(|client| {
                let ledger = &ledger;
                scope.spawn(move || run_client(options, client, end, ledger))
            })
            .collect();
        clients.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(anyhow!("a client panicked")))).collect()
    });
    let mut report = Report { acknowledged: 0, disconnects: Vec::new() };
    for (client, end) in ends.into_iter().enumerate() {
        let end = end?;
        report.acknowledged += end.acknowledged;
        report.disconnects.extend(end.disconnect.map(|e| format!("client {}: {e:#}", client + 1)));
    }
    Ok(report)
}

/// An error of the server's ends the client; one of the ledger's voids the whole test.
fn run_client(options: &Options, client: i32, end: Instant, ledger: &Writer) -> Result<ClientEnd> {
    let mut redis = Connection::open(&options.socket)?;
    let (set, count) = (set_of(client), count_of(client));
    let mut seq = redis.call(&["GET", &count])?.number().unwrap_or(0);
    let mut acknowledged = 0;
    while Instant::now() < end {
        seq += 1;
        let done = redis.transaction(&[&["SADD", &set, &seq.to_string()], &["INCR", &count]]);
        if let Err(error) = done {
            return Ok(ClientEnd { acknowledged, disconnect: Some(error) });
        }
        ledger.acknowledge(Entry { client, seq })?;
        acknowledged += 1;
    }
    Ok(ClientEnd { acknowledged, disconnect: None })
}
