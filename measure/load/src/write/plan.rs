//! Who writes what: files, regions and limits, decided before anything runs.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::options::{Layout, Options, Pattern};
use crate::block::BLOCK_SIZE_MIN;

/// The whole run, as every worker sees it.
pub struct Plan {
    /// What was asked for.
    pub options: Options,
    /// Sequences of this run are above this number.
    pub base: u64,
    /// Blocks one worker owns (overwrites) or may append.
    pub blocks_per_worker: u64,
    /// Timed operations each worker may do at most.
    pub ops_per_worker: u64,
    /// Time between the starts of one worker's operations, for a steady load.
    pub interval: Option<Duration>,
}

impl Plan {
    /// Checks the options and divides the work.
    pub fn new(options: &Options, base: u64) -> Result<Self> {
        let bs = options.bs as u64;
        let workers = (options.threads * options.processes) as u64;
        ensure!(workers > 0, "--threads and --processes must be at least 1");
        ensure!(
            options.bs >= BLOCK_SIZE_MIN && options.bs.is_multiple_of(8),
            "--bs {bs} must be a multiple of 8, and at least {BLOCK_SIZE_MIN}"
        );
        let blocks_per_worker = options.size / bs / workers;
        ensure!(blocks_per_worker > 0, "--size {} is less than one block for each worker", options.size);
        let limits = [options.ops, options.sustained.map(|bytes| bytes / bs)];
        let asked = limits.into_iter().flatten().min();
        let appends = options.pattern == Pattern::Append;
        ensure!(
            asked.is_some() || options.seconds.is_some() || appends,
            "give --ops, --seconds or --sustained: an endless load is no measurement"
        );
        let mut ops_per_worker = asked.map_or(u64::MAX, |ops| (ops / workers).max(1));
        if appends {
            ops_per_worker = ops_per_worker.min(blocks_per_worker.saturating_sub(options.warmup));
            ensure!(ops_per_worker > 0, "--size leaves nothing to append after --warmup");
        }
        let interval = options.rate.map(|rate| Duration::from_secs_f64(workers as f64 / rate.max(1e-3)));
        Ok(Plan { options: options.clone(), base, blocks_per_worker, ops_per_worker, interval })
    }

    /// All workers of all processes.
    pub fn workers(&self) -> u32 {
        (self.options.threads * self.options.processes) as u32
    }

    /// The workers of one process.
    pub fn workers_of(&self, process: usize) -> std::ops::Range<u32> {
        let threads = self.options.threads as u32;
        let first = process as u32 * threads;
        first..first + threads
    }

    /// A worker's file, by name.
    pub fn file_name(&self, worker: u32) -> String {
        match self.options.layout {
            Layout::Shared => self.options.name.clone(),
            Layout::Private => format!("{worker}-{}", self.options.name),
        }
    }

    /// A worker's file.
    pub fn path(&self, worker: u32) -> PathBuf {
        self.options.dir.join(self.file_name(worker))
    }

    /// The first block of a worker's region in its file.
    pub fn first_block(&self, worker: u32) -> u64 {
        match self.options.layout {
            Layout::Shared => u64::from(worker) * self.blocks_per_worker,
            Layout::Private => 0,
        }
    }
}
