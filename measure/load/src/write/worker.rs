//! One process's share of the load: its threads, their clocks, and what each of them wrote.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};

use super::options::{Pattern, Sync};
use super::plan::Plan;
use super::verify::{Content, Written};
use crate::block::{self, Tag};
use crate::latency::{Counts, Recorder};
use crate::pace::wait_until;
use crate::sys::{Fd, OpenMode};

/// What one process reports.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Latencies of all its threads.
    pub counts: Counts,
    /// Of the writes alone, and of the syncs alone, if they were timed apart.
    pub apart: [Counts; 2],
    /// From the start signal to its last thread's end.
    pub seconds: f64,
    /// What each of its workers wrote.
    pub writers: Vec<Written>,
}

/// Runs the workers of `process`. `ready` is called once all have warmed up and returns when the
/// whole load may start.
pub fn run_process(plan: &Plan, process: usize, ready: impl FnOnce() -> Result<()>) -> Result<Outcome> {
    let workers = plan.workers_of(process);
    let warm = Barrier::new(workers.len() + 1);
    let go = Barrier::new(workers.len() + 1);
    thread::scope(|scope| {
        let threads: Vec<_> = workers
            .map(|number| {
                let (warm, go) = (&warm, &go);
                scope.spawn(move || run_worker(plan, number, warm, go))
            })
            .collect();
        warm.wait();
        let released = ready();
        let started = Instant::now();
        go.wait();
        let mut clocks = Clocks::default();
        let mut writers = Vec::new();
        for thread in threads {
            let (latencies, written) = thread.join().map_err(|_| anyhow!("a worker thread panicked"))??;
            clocks.merge(&latencies);
            writers.push(written);
        }
        released?;
        let seconds = started.elapsed().as_secs_f64();
        let apart = [clocks.write.to_counts(), clocks.sync.to_counts()];
        Ok(Outcome { counts: clocks.both.to_counts(), apart, seconds, writers })
    })
}

/// What one worker timed: whole operations, and their parts if that was asked for.
#[derive(Default)]
struct Clocks {
    both: Recorder,
    write: Recorder,
    sync: Recorder,
}

impl Clocks {
    fn merge(&mut self, other: &Clocks) {
        self.both.merge(&other.both);
        self.write.merge(&other.write);
        self.sync.merge(&other.sync);
    }
}

fn run_worker(plan: &Plan, number: u32, warm: &Barrier, go: &Barrier) -> Result<(Clocks, Written)> {
    // Both barriers are passed whatever happens, or one failed worker would hang the others.
    let prepared = Worker::new(plan, number).and_then(|mut worker| {
        let mut ignored = Clocks::default();
        (0..plan.options.warmup).try_for_each(|_| worker.operate(&mut ignored).map(drop))?;
        Ok(worker)
    });
    warm.wait();
    go.wait();
    let mut worker = prepared?;
    let mut clocks = Clocks::default();
    worker.run(&mut clocks).with_context(|| format!("worker {number} failed"))?;
    Ok((clocks, worker.written))
}

struct Worker<'a> {
    plan: &'a Plan,
    fd: Fd,
    number: u32,
    block: Vec<u8>,
    ops: u64,
    random: u64,
    written: Written,
}

impl<'a> Worker<'a> {
    fn new(plan: &'a Plan, number: u32) -> Result<Self> {
        let path = plan.path(number);
        let appends = plan.options.pattern == Pattern::Append;
        let mode = if appends { OpenMode::Append } else { OpenMode::ReadWrite };
        let fd = Fd::open(&path, mode).with_context(|| format!("cannot open {}", path.display()))?;
        let content = if appends {
            Content::Appended { count: 0 }
        } else {
            Content::Overwritten {
                first_block: plan.first_block(number),
                seqs: vec![0; plan.blocks_per_worker as usize],
            }
        };
        Ok(Worker {
            plan,
            fd,
            number,
            block: vec![0; plan.options.bs],
            ops: 0,
            random: block::mix(plan.base ^ u64::from(number)) | 1,
            written: Written { file: plan.file_name(number), writer: number, content },
        })
    }

    fn run(&mut self, clocks: &mut Clocks) -> Result<()> {
        let started = Instant::now();
        let end = self.plan.options.seconds.map(|s| started + Duration::from_secs_f64(s));
        let mut due = started;
        for _ in 0..self.plan.ops_per_worker {
            if let Some(interval) = self.plan.interval {
                wait_until(due);
                due += interval;
            }
            let finished = self.operate(clocks)?;
            if end.is_some_and(|end| finished >= end) {
                break;
            }
        }
        Ok(())
    }

    /// One timed operation; returns when it ended.
    fn operate(&mut self, clocks: &mut Clocks) -> Result<Instant> {
        let seq = self.plan.base + self.ops + 1;
        let number = self.next_block();
        block::stamp(&mut self.block, Tag { number, seq, writer: self.number });
        let sync = self.plan.options.sync == Sync::Fdatasync;

        let started = Instant::now();
        match self.plan.options.pattern {
            Pattern::Append => self.fd.write_all(&self.block)?,
            _ => self.fd.pwrite_all(&self.block, number * self.block.len() as u64)?,
        }
        let written = self.plan.options.apart.then(Instant::now);
        if sync {
            self.fd.fdatasync()?;
        }
        let finished = Instant::now();

        clocks.both.record(finished - started);
        if let Some(written) = written {
            clocks.write.record(written - started);
            clocks.sync.record(finished - written);
        }
        self.ops += 1;
        match &mut self.written.content {
            Content::Appended { count } => *count += 1,
            Content::Overwritten { first_block, seqs } => seqs[(number - *first_block) as usize] = seq,
        }
        Ok(finished)
    }

    fn next_block(&mut self) -> u64 {
        let blocks = self.plan.blocks_per_worker;
        let first = self.plan.first_block(self.number);
        match self.plan.options.pattern {
            Pattern::Append => self.ops,
            Pattern::Sequential => first + self.ops % blocks,
            Pattern::Random => {
                self.random = block::mix(self.random);
                first + self.random % blocks
            }
        }
    }
}
