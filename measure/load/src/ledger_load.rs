//! The ledger loads: small commits by several clients of a server, each noted in a ledger once it was acknowledged, and
//! the check that compares the two afterwards.
//!
//! Each client has numbers of its own and goes on behind its last one. The server may be killed at any moment: a lost
//! connection ends that client and is reported, not an error. What a commit is, and how it is found again, is the
//! server's: [`Server`].

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::latency::{Recorder, Summary};
use crate::ledger::{self, Entry, Verdict, Writer};
use crate::threads;

/// Where commits are found again.
pub trait Checked: Args {
    /// Everything there that these clients committed, and what is wrong with it.
    fn find(&self, clients: &BTreeSet<i32>) -> Result<Found>;
}

/// A server that takes commits. Its options say how it is reached.
pub trait Server: Args + Sync {
    /// A connection.
    type Client: Client;

    /// Makes what commits go into, if it is not there.
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    /// Connects client `number`. Its last number, too: 0 if it has committed nothing.
    fn connect(&self, number: i32) -> Result<(Self::Client, i64)>;
}

/// One of the clients.
pub trait Client {
    /// Commits a number. It was acknowledged when this returns.
    fn commit(&mut self, seq: i64) -> Result<()>;
}

/// What a check finds.
#[derive(Default)]
pub struct Found {
    /// The commits.
    pub commits: HashSet<Entry>,
    /// What is wrong with the database, or with the load's invariants.
    pub errors: Vec<String>,
}

/// Options of a load.
#[derive(Clone, Debug, Args)]
pub struct Load<S: Args> {
    /// Where it goes.
    #[command(flatten)]
    pub server: S,
    /// Connections, each with its own sequence
    #[arg(long, default_value_t = 4)]
    pub clients: u32,
    /// End after this many seconds
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Note each acknowledged commit in this file
    #[arg(long)]
    pub ledger: Option<PathBuf>,
}

/// Options of a check.
#[derive(Clone, Debug, Args)]
pub struct Check<S: Args> {
    /// Where the commits are.
    #[command(flatten)]
    pub server: S,
    /// The ledger that the load wrote
    #[arg(long)]
    pub ledger: PathBuf,
}

/// The result of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Commits the server acknowledged.
    pub acknowledged: u64,
    /// Commits a second.
    pub tps: f64,
    /// How long it ran.
    pub seconds: f64,
    /// Latency of one commit.
    pub latency: Summary,
    /// The errors of clients whose connection broke: expected when the server is killed.
    pub disconnects: Vec<String>,
}

/// How a client ended.
struct End {
    was_connected: bool,
    recorder: Recorder,
    disconnect: Option<Error>,
}

impl<S: Server> Load<S> {
    /// Runs the load until its time is over or every connection is lost.
    pub fn run(&self) -> Result<Report> {
        self.server.prepare()?;
        let ledger = self.ledger.as_deref().map(Writer::open).transpose()?;
        let started = Instant::now();
        let end = started + Duration::from_secs_f64(self.seconds);
        let ends = threads::each(1..=self.clients as i32, |number| self.client(number, end, ledger.as_ref()));
        let seconds = started.elapsed().as_secs_f64();
        let (mut recorder, mut disconnects, mut was_there) = (Recorder::default(), Vec::new(), false);
        for (number, end) in (1..).zip(ends) {
            let end = end?;
            was_there |= end.was_connected;
            recorder.merge(&end.recorder);
            disconnects.extend(end.disconnect.map(|error| format!("client {number}: {error:#}")));
        }
        ensure!(was_there || disconnects.is_empty(), "no client could connect: {}", disconnects[0]);
        let latency = recorder.summary();
        let tps = latency.ops as f64 / seconds.max(f64::EPSILON);
        Ok(Report { acknowledged: latency.ops, tps, seconds, latency, disconnects })
    }

    /// An error of the server's ends the client; one of the ledger's voids the whole test.
    fn client(&self, number: i32, end: Instant, ledger: Option<&Writer>) -> Result<End> {
        let mut recorder = Recorder::default();
        let (mut client, mut seq) = match self.server.connect(number) {
            Ok(connected) => connected,
            Err(error) => return Ok(End { was_connected: false, recorder, disconnect: Some(error) }),
        };
        while Instant::now() < end {
            seq += 1;
            let begin = Instant::now();
            if let Err(error) = client.commit(seq) {
                return Ok(End { was_connected: true, recorder, disconnect: Some(error) });
            }
            recorder.record(begin.elapsed());
            if let Some(ledger) = ledger {
                ledger.acknowledge(Entry { client: number, seq })?;
            }
        }
        Ok(End { was_connected: true, recorder, disconnect: None })
    }
}

impl<S: Checked> Check<S> {
    /// Every line of the ledger must be found again, and what is there must be sound.
    pub fn verdict(&self) -> Result<Verdict> {
        let acknowledged = ledger::read(&self.ledger)?;
        let found = self.server.find(&acknowledged.iter().map(|entry| entry.client).collect())?;
        let verdict = Verdict::compare(&acknowledged, &found.commits);
        Ok(Verdict { integrity_errors: found.errors, ..verdict })
    }
}
