//! The PostgreSQL ledger load.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use postgres::{Client, NoTls};

use super::{Options, Report};
use crate::latency::Recorder;
use crate::ledger::{Entry, Writer};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS seawall_ledger (
    client integer, seq bigint, filler text, PRIMARY KEY (client, seq))";

/// Runs the load until its time is over or every connection is lost.
pub fn run(options: &Options) -> Result<Report> {
    let mut client = Client::connect(&options.connect, NoTls).context("connect to PostgreSQL")?;
    client.batch_execute(TABLE).context("create the ledger table")?;
    let ledger = Writer::open(&options.ledger)?;
    let started = Instant::now();
    let end = started + Duration::from_secs_f64(options.seconds);
    let ends: Vec<Result<ClientEnd>> = thread::scope(|scope| {
        let threads: Vec<_> = (1..=options.clients)
            .map(|number| {
                let ledger = &ledger;
                scope.spawn(move || run_client(&options.connect, number as i32, end, ledger))
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(anyhow!("a client panicked")))).collect()
    });
    let mut recorder = Recorder::default();
    let mut disconnects = Vec::new();
    for end in ends {
        let end = end?;
        recorder.merge(&end.recorder);
        disconnects.extend(end.disconnect);
    }
    let seconds = started.elapsed().as_secs_f64();
    let latency = recorder.summary();
    let tps = if seconds > 0.0 { latency.ops as f64 / seconds } else { 0.0 };
    Ok(Report { acknowledged: latency.ops, tps, seconds, latency, disconnects })
}

struct ClientEnd {
    recorder: Recorder,
    disconnect: Option<String>,
}

fn run_client(connect: &str, number: i32, end: Instant, ledger: &Writer) -> Result<ClientEnd> {
    let mut recorder = Recorder::default();
    let disconnect = match commit_until(connect, number, end, ledger, &mut recorder) {
        Ok(()) => None,
        Err(Stop::Server(error)) => Some(format!("client {number}: {error}")),
        Err(Stop::Ledger(error)) => return Err(error),
    };
    Ok(ClientEnd { recorder, disconnect })
}

enum Stop {
    /// The server went away, or refused: what a kill looks like from outside.
    Server(postgres::Error),
    /// The ledger itself failed: the whole test is void.
    Ledger(anyhow::Error),
}

impl From<postgres::Error> for Stop {
    fn from(error: postgres::Error) -> Self {
        Stop::Server(error)
    }
}

fn commit_until(
    connect: &str,
    number: i32,
    end: Instant,
    ledger: &Writer,
    recorder: &mut Recorder,
) -> Result<(), Stop> {
    let mut client = Client::connect(connect, NoTls)?;
    client.batch_execute("SET synchronous_commit = on")?;
    let last =
        client.query_one("SELECT coalesce(max(seq), 0) FROM seawall_ledger WHERE client = $1", &[&number])?;
    let mut seq: i64 = last.get(0);
    let insert = client.prepare("INSERT INTO seawall_ledger VALUES ($1, $2, repeat('x', 60))")?;
    while Instant::now() < end {
        seq += 1;
        let begin = Instant::now();
        client.execute(&insert, &[&number, &seq])?;
        recorder.record(begin.elapsed());
        ledger.acknowledge(Entry { client: number, seq }).map_err(Stop::Ledger)?;
    }
    Ok(())
}
