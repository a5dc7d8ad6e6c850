//! One look at a running daemon and its clients.
//!
//! From outside: `/proc`, the block device's counters, and `seawall status --json`, asked last so that the
//! daemon's thread for that request is not among what is counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Deserialize;

use super::growth::Growth;
use crate::lab::Lab;
use crate::machine;
use crate::process::{Ended, Running, cpu_seconds, pause};

/// Between two looks.
const TICK: Duration = Duration::from_secs(1);

/// What was seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub seconds: f64,
    /// The daemon's memory without what it shares with its clients: the pool and the run-time memory.
    pub daemon_kb: f64,
    /// Pool and run-time memory, as far as the daemon touched them. On persistent memory it is no memory of its own.
    pub daemon_shared_kb: f64,
    pub daemon_fds: f64,
    pub daemon_threads: f64,
    /// Processor time of the daemon so far, in seconds.
    pub daemon_cpu_s: f64,
    /// Anonymous memory of the load's processes.
    pub clients_kb: f64,
    /// Live log: bytes of segments that are not free.
    pub backlog: f64,
    pub backlog_files: f64,
    /// Entries of the file table in use.
    pub files: f64,
    /// Milliseconds that the data's device was busy so far.
    pub disk_busy_ms: f64,
}

/// What `seawall status --json` says, as far as it is needed here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    /// `None`: the daemon does not serve yet, or no more, and the pool itself was asked.
    daemon_pid: Option<u32>,
    pub backlog_bytes: u64,
    pub backlog_files: u32,
    pub files: Vec<FileStatus>,
    pub files_max: u32,
    pub events: Vec<EventStatus>,
}

/// A managed file.
#[derive(Clone, Debug, Deserialize)]
pub struct FileStatus {
    pub tracked: bool,
    pub bytes: u64,
    pub untracked_writes: u64,
    pub left: u64,
}

/// A wait event.
#[derive(Clone, Debug, Deserialize)]
pub struct EventStatus {
    pub name: String,
    pub count: u64,
    #[serde(rename = "p99.9_ns")]
    pub p999_ns: u64,
    pub max_ns: u64,
}

/// The samples of one load.
pub struct Watch<'a> {
    lab: &'a Lab,
    begin: Instant,
    device: Option<PathBuf>,
    pub samples: Vec<Sample>,
    /// The last status.
    pub status: Status,
}

impl<'a> Watch<'a> {
    /// Nothing seen yet.
    pub fn new(lab: &'a Lab) -> Self {
        let device = machine::block_device(lab.work.path()).map(|device| device.join("stat"));
        Self { lab, begin: Instant::now(), device, samples: Vec::new(), status: Status::default() }
    }

    /// Looks once, if a daemon serves the pool. `clients` are the load's processes.
    pub fn look(&mut self, clients: &[u32]) -> Result<()> {
        let Some(daemon) = self.lab.pool.daemon() else { return Ok(()) };
        let mut sample = Sample { seconds: self.begin.elapsed().as_secs_f64(), ..Sample::default() };
        let Some(memory) = Memory::of(daemon) else { return Ok(()) };
        (sample.daemon_kb, sample.daemon_shared_kb) = (memory.anonymous + memory.file, memory.shared);
        sample.daemon_fds = count(&format!("/proc/{daemon}/fd"));
        sample.daemon_threads = count(&format!("/proc/{daemon}/task"));
        sample.daemon_cpu_s = cpu_seconds(daemon);
        sample.clients_kb = clients.iter().filter_map(|pid| Memory::of(*pid)).map(|m| m.anonymous).sum();
        sample.disk_busy_ms = self.device.as_deref().map_or(0.0, busy_ms);
        let status = match self.lab.pool.status::<Status>() {
            // It ended meanwhile.
            Err(_) if self.lab.pool.daemon() != Some(daemon) => return Ok(()),
            asked => asked?,
        };
        if status.daemon_pid.is_none() {
            return Ok(());
        }
        sample.backlog = status.backlog_bytes as f64;
        sample.backlog_files = f64::from(status.backlog_files);
        sample.files = status.files.len() as f64;
        self.status = status;
        self.samples.push(sample);
        Ok(())
    }

    /// What became of one figure.
    pub fn growth(&self, figure: impl Fn(&Sample) -> f64) -> Growth {
        let series: Vec<_> = self.samples.iter().map(|s| (s.seconds, figure(s))).collect();
        Growth::of(&series).unwrap_or_default()
    }

    /// How much a counter moved in each second of the run.
    pub fn rate(&self, counter: impl Fn(&Sample) -> f64) -> f64 {
        match (self.samples.first(), self.samples.last()) {
            (Some(a), Some(b)) if b.seconds > a.seconds => {
                (counter(b) - counter(a)) / (b.seconds - a.seconds)
            }
            _ => 0.0,
        }
    }
}

/// Resident memory of a process by kind, in KiB.
struct Memory {
    anonymous: f64,
    file: f64,
    shared: f64,
}

impl Memory {
    fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Self { anonymous: field("RssAnon:")?, file: field("RssFile:")?, shared: field("RssShmem:")? })
    }
}

fn count(dir: &str) -> f64 {
    fs::read_dir(dir).map_or(0, Iterator::count) as f64
}

/// The tenth field: time with a request under way (Documentation/block/stat.rst).
fn busy_ms(device: &Path) -> f64 {
    let text = fs::read_to_string(device).unwrap_or_default();
    text.split_whitespace().nth(9).and_then(|ms| ms.parse().ok()).unwrap_or(0.0)
}

/// Looks once a second until the process has ended. `clients` names the load's processes.
pub fn watch_over(
    mut running: Running,
    watch: &mut Watch<'_>,
    clients: impl Fn(u32) -> Vec<u32>,
) -> Result<Ended> {
    let pid = running.pid();
    loop {
        let next = Instant::now() + TICK;
        watch.look(&clients(pid))?;
        while Instant::now() < next {
            if running.has_ended()? {
                return running.wait();
            }
            pause(Duration::from_millis(10))?;
        }
    }
}
