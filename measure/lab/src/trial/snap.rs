//! `seawall snap` beside a load, and what it costs: by its own account, and by the scheduler's.

use std::cell::Cell;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::lab::Lab;
use crate::pg::Cluster;
use crate::process::{self, Running};

/// Seconds that capturing goes on behind the load, so that what it has cost can be read while it is there.
const SPARE: u64 = 4;

/// It, running.
pub struct Snap {
    running: Running,
    begin: Instant,
    /// How long it was stopped.
    stopped: Cell<Duration>,
    /// Sessions of others that capture, too.
    others: Vec<u32>,
}

/// It, stopped.
pub struct Stopped<'a> {
    snap: &'a Snap,
    since: Instant,
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        process::signal(self.snap.running.pid(), libc::SIGCONT);
        self.snap.stopped.set(self.snap.stopped.get() + self.since.elapsed());
    }
}

/// What one run with capturing cost.
pub struct Costs {
    /// CPU time of each snapshot, ms.
    pub snapshots_ms: Vec<f64>,
    /// Percent of one processor while it ran: `seawall snap`, and its session in the server.
    pub recorder_percent: f64,
    pub server_percent: f64,
}

impl Snap {
    /// Starts it: a snapshot every so many seconds, beside a load of so many.
    pub fn start(lab: &Lab, cluster: &Cluster<'_>, every: u64, seconds: u64) -> Result<Self> {
        let mut snap = lab.command(&lab.tools.seawall);
        snap.args(["snap", "--no-seawall", "--json"]);
        snap.args(["--every", &format!("{every}s"), "--for", &format!("{}s", seconds + SPARE)]);
        snap.arg("--repo")
            .arg(lab.work.data("snapshots").join("capture.db"))
            .args(["--db", &cluster.connection()]);
        lab.fresh_dir(&lab.work.data("snapshots"))?;
        let others = sessions(cluster)?;
        let running = process::start_captured(snap, "seawall snap", libc::SIGINT)?;
        Ok(Snap { running, begin: Instant::now(), stopped: Cell::default(), others })
    }

    /// Stops it for as long as what is returned lives: nothing is captured meanwhile.
    pub fn stop(&self) -> Stopped<'_> {
        process::signal(self.running.pid(), libc::SIGSTOP);
        Stopped { snap: self, since: Instant::now() }
    }

    /// Its processor time so far, while it still runs; then its own account of each snapshot.
    pub fn costs(self, cluster: &Cluster<'_>) -> Result<Costs> {
        let session = sessions(cluster)?.into_iter().find(|pid| !self.others.contains(pid));
        let session = session.context("seawall snap has no session in the server")?;
        let elapsed = (self.begin.elapsed() - self.stopped.get()).as_secs_f64();
        let percent = |pid: u32| Ok::<_, anyhow::Error>(cpu_seconds(pid)? * 100.0 / elapsed);
        let (recorder_percent, server_percent) = (percent(self.running.pid())?, percent(session)?);
        let said = self.running.wait()?.success("seawall snap")?;
        let cost = |line: &str| -> Option<f64> {
            let line: Value = serde_json::from_str(line).ok()?;
            Some(line["cpu_us"].as_f64()? / 1000.0)
        };
        let snapshots_ms: Vec<f64> = String::from_utf8_lossy(&said).lines().filter_map(cost).collect();
        ensure!(snapshots_ms.len() >= 2, "seawall snap took {} snapshots", snapshots_ms.len());
        Ok(Costs { snapshots_ms, recorder_percent, server_percent })
    }
}

/// The server's processes for those who capture.
fn sessions(cluster: &Cluster<'_>) -> Result<Vec<u32>> {
    let found = cluster.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'seawall awr'")?;
    found.lines().map(|pid| pid.trim().parse().context("a process id is not a number")).collect()
}

/// Time on a processor by the scheduler's own count, in nanoseconds; of a process with one thread.
fn cpu_seconds(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/schedstat");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let ns: f64 = text
        .split(' ')
        .next()
        .and_then(|ns| ns.parse().ok())
        .with_context(|| format!("{path} holds no number"))?;
    Ok(ns / 1e9)
}
