//! The etcd ledger load.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};

use super::{Connection, Options, Report, key_of, prefix_of, value_of};
use crate::ledger::{Entry, Writer};

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
