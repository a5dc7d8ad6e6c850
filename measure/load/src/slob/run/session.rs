//! One session at work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::failure::Failure;
use crate::latency::Recorder;
use crate::pace::Pace;
use crate::random::Random;
use crate::slob::ledger::{self, Acknowledged};
use crate::slob::outcome::{RowCounts, Windows};
use crate::slob::pick::{Operation, Picker, Rows, Work};
use crate::slob::stamp::Stamp;
use crate::slob::store::Session;
use crate::slob::{CommitMode, Conf, Layout, RedoStress};

/// What all sessions of a run have in common.
pub struct Plan<'a> {
    pub conf: &'a Conf,
    pub layout: Layout,
    pub commit: CommitMode,
    /// The run's number, which its rows will name.
    pub run: u32,
    pub ledger: &'a ledger::Writer,
}

/// What a session did.
#[derive(Default)]
pub struct Worked {
    pub latency: Recorder,
    pub service: Recorder,
    pub updates: Recorder,
    pub reads: Recorder,
    pub scans: Recorder,
    pub waits: Recorder,
    pub begun: u64,
    pub intended: u64,
    pub operations: u64,
    pub transactions: u64,
    pub rows: RowCounts,
    /// From the run's start on.
    pub windows: Windows,
    pub conflicts: u64,
    pub unacknowledged: u64,
    pub thought: Duration,
    pub error: Option<String>,
}

/// A session and what it needs.
pub struct Worker<'a> {
    plan: &'a Plan<'a>,
    number: u32,
    session: Box<dyn Session>,
    picker: Picker,
    seq: u64,
    /// Updates that nobody has waited for yet.
    pending: Vec<Acknowledged>,
    /// Operations without an update, and others, that a transaction has not ended yet.
    open: u64,
    /// When the run started.
    started: Instant,
    done: Worked,
}

impl<'a> Worker<'a> {
    /// Session `number` of a run, counted from 0 over all schemas.
    pub fn new(plan: &'a Plan<'a>, number: u32, session: Box<dyn Session>) -> Result<Self> {
        let conf = plan.conf;
        let (schema, thread) = (number / conf.threads_per_schema + 1, number % conf.threads_per_schema);
        let stretch = stretch(plan, thread);
        ensure!(
            stretch.1 - stretch.0 >= conf.work_unit,
            "SCALE={} is too small for {} sessions of one transaction each",
            conf.scale,
            conf.threads_per_schema
        );
        let random = Random::new(plan.run.into(), number.into());
        let picker = Picker::new(conf, &plan.layout, schema, stretch, random)?;
        Ok(Worker {
            plan,
            number,
            session,
            picker,
            seq: 0,
            pending: Vec::new(),
            open: 0,
            started: Instant::now(),
            done: Worked::default(),
        })
    }

    /// Works until the pace, the count or somebody's failure ends it.
    pub fn work(mut self, started: Instant, mut pace: Pace, stop: &AtomicBool) -> Worked {
        self.started = started;
        if let Err(failure) = self.operate_all(&mut pace, stop) {
            stop.store(true, Ordering::Relaxed);
            self.done.error = Some(format!("session {}: {failure}", self.number));
            self.done.unacknowledged += self.pending.len() as u64;
        }
        self.done.intended = pace.intended(Instant::now()).unwrap_or_default();
        self.done
    }

    fn operate_all(&mut self, pace: &mut Pace, stop: &AtomicBool) -> Result<(), Failure> {
        let commit = self.plan.commit;
        if commit == CommitMode::OneTransaction {
            self.session.begin()?;
        }
        let count = match self.plan.conf.work_loop {
            0 => u64::MAX,
            count => count,
        };
        while self.done.begun < count && !stop.load(Ordering::Relaxed) {
            let Some(intended) = pace.next_start() else { break };
            self.done.begun += 1;
            let operation = self.picker.pick();
            self.operate(operation, intended)?;
            if let Some(rest) = operation.think {
                thread::sleep(rest);
                self.done.thought += rest;
            }
        }
        let began = Instant::now();
        match commit {
            CommitMode::PerOperation => return Ok(()),
            CommitMode::Asynchronous => self.session.wait_durable()?,
            CommitMode::OneTransaction => self.session.commit()?,
        }
        self.done.waits.record(began.elapsed());
        self.acknowledge_all()
    }

    /// One operation: timed, and counted when it was acknowledged.
    fn operate(&mut self, operation: Operation, intended: Instant) -> Result<(), Failure> {
        let begun = Instant::now();
        let result = match operation.work {
            Work::Read(rows) => self.session.read(operation.schema, rows),
            Work::Scan => self.session.scan(operation.schema),
            Work::Update(rows) => self.update(operation.schema, rows),
        };
        let ended = Instant::now();
        let touched = match result {
            Ok(touched) => touched,
            // A transaction that spans the session is lost with one of its operations.
            Err(Failure::Conflict(_)) if self.plan.commit != CommitMode::OneTransaction => {
                self.done.conflicts += 1;
                return Ok(());
            }
            Err(failure) => {
                self.done.unacknowledged += u64::from(matches!(operation.work, Work::Update(_)));
                return Err(failure);
            }
        };
        ensure_all_there(operation.work, touched)?;
        let latency = ended - intended;
        self.done.latency.record(latency);
        self.done.service.record(ended - begun);
        let (recorder, rows) = match operation.work {
            Work::Read(_) => (&mut self.done.reads, &mut self.done.rows.read),
            Work::Scan => (&mut self.done.scans, &mut self.done.rows.scanned),
            Work::Update(_) => (&mut self.done.updates, &mut self.done.rows.updated),
        };
        recorder.record(latency);
        *rows += touched;
        self.open += 1;
        if self.plan.commit == CommitMode::PerOperation { self.acknowledge_all() } else { Ok(()) }
    }

    fn update(&mut self, schema: u32, rows: Rows) -> Result<u64, Failure> {
        self.seq += 1;
        let stamp = Stamp {
            run: self.plan.run,
            thread: self.number as u16,
            seq: self.seq,
            r: rows.r,
            unit: rows.unit as u16,
        };
        let touched = self.session.update(schema, rows, &texts(stamp, self.plan.conf.redo_stress))?;
        self.pending.push(Acknowledged { schema, stamp });
        Ok(touched)
    }

    /// Everything done so far is durable as far as this mode promises: it counts.
    fn acknowledge_all(&mut self) -> Result<(), Failure> {
        if !self.pending.is_empty() {
            self.plan.ledger.acknowledge(&self.pending)?;
            self.pending.clear();
        }
        self.done.operations += self.open;
        let transactions = match self.plan.commit {
            CommitMode::OneTransaction => 1,
            _ => self.open,
        };
        self.done.transactions += transactions;
        self.done.windows.count(self.started.elapsed(), transactions);
        self.open = 0;
        Ok(())
    }
}

/// The rows a session may touch: all, but in one transaction a part of its own, or the sessions of a schema would
/// wait for each other's end.
fn stretch(plan: &Plan<'_>, thread: u32) -> (u64, u64) {
    let (rows, threads) = (plan.layout.rows, u64::from(plan.conf.threads_per_schema));
    if plan.commit != CommitMode::OneTransaction {
        return (1, rows + 1);
    }
    let border = |thread: u64| 1 + rows * thread / threads;
    (border(thread.into()), border(u64::from(thread) + 1))
}

/// What an update gives the rows: c2 and c20, or c2 to c20.
fn texts(stamp: Stamp, stress: RedoStress) -> Vec<String> {
    stress.columns().into_iter().map(|column| stamp.column(column - 2)).collect()
}

/// An operation finds all its rows, or some are lost.
fn ensure_all_there(work: Work, touched: u64) -> Result<(), Failure> {
    let (Work::Read(rows) | Work::Update(rows)) = work else { return Ok(()) };
    if touched == rows.count() {
        return Ok(());
    }
    let (first, last, wanted) = (rows.above() + 1, rows.r - 1, rows.count());
    Err(Failure::Other(anyhow::anyhow!(
        "{touched} rows were found from {first} to {last}, not {wanted}: rows are lost"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lite_changes_two_columns_and_heavy_all() {
        let stamp = Stamp { run: 1, thread: 2, seq: 3, r: 100, unit: 64 };
        let lite = texts(stamp, RedoStress::Lite);
        assert_eq!(lite, [stamp.column(0), stamp.column(18)]);
        assert_eq!(texts(stamp, RedoStress::Heavy), stamp.columns());
    }
}
