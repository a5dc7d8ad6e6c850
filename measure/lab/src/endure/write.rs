//! The write load: a file that a policy logs, written by `seawall-load` without Seawall for a while, and then under it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use seawall_load::write::{Pattern, Report};

use super::plan::{BLOCK_BYTES, file_bytes, preset};
use super::report::{Latencies, Work};
use super::sample::{Watch, watch_over};
use crate::bench::word;
use crate::case::PolicyName;
use crate::lab::Lab;
use crate::launch;
use crate::process::{self, descendants};
use crate::side::Side;

/// The load sleeps and spins between operations; more it cannot keep up with.
const RATE_OPS_MAX: f64 = 20_000.0;
/// The part of the time that the control gets.
const CONTROL: f64 = 0.2;

/// What is written.
pub struct Writing<'a> {
    pub lab: &'a Lab,
    pub policy: PolicyName,
    pub pattern: Pattern,
    /// Writes a second. `None`: as many as there can be.
    pub rate: Option<f64>,
}

/// The file, in a directory that the preset `postgres` takes for PGDATA.
struct Place {
    data: PathBuf,
    dir: PathBuf,
    name: &'static str,
}

impl Writing<'_> {
    /// Runs it; the data is checked at the end.
    pub fn run(&self, lasts: Duration, watch: &mut Watch<'_>) -> Result<Work> {
        let place = Place::new(self.lab, self.policy)?;
        self.prepare(&place)?;
        self.lab.settle()?;
        let control = self.control(&place, lasts.as_secs_f64() * CONTROL)?;
        self.lab.settle()?;
        let report = self.under_seawall(&place, lasts.as_secs_f64() * (1.0 - CONTROL), watch)?;
        fs::remove_dir_all(&place.data)?;
        let all = [
            ("write", report.write),
            ("sync", report.fsync),
            ("both", Some(report.latency)),
            ("without Seawall, no sync", Some(control.latency)),
        ];
        let latencies = all.into_iter().filter_map(|(name, s)| Some((name.to_owned(), Latencies::of(s?))));
        Ok(Work { seconds: report.seconds, bytes: Some(report.bytes), latencies: latencies.collect() })
    }

    /// Makes the file on the bare file system: what is watched does not begin with a log full of it.
    fn prepare(&self, place: &Place) -> Result<()> {
        let mut prepare = self.lab.command(&self.lab.tools.load);
        prepare.args(self.words(place, 1.0)).args(["--warmup", "0", "--ops", "1"]);
        process::run(prepare, "preparing the file").map(drop)
    }

    /// What the machine itself does to a program that only writes, in this minute and at this pace.
    fn control(&self, place: &Place, seconds: f64) -> Result<Report> {
        let mut control = self.lab.command(&self.lab.tools.load);
        control.args(self.paced(place, seconds, "none"));
        Ok(serde_json::from_slice(&process::run(control, "the control")?)?)
    }

    fn under_seawall(&self, place: &Place, seconds: f64, watch: &mut Watch<'_>) -> Result<Report> {
        let (lab, args) = (self.lab, self.paced(place, seconds, "fdatasync"));
        let preset = preset(self.policy);
        let command = launch::command(lab, Side::Seawall, preset, &place.data, &lab.tools.load, args)?;
        let running = process::start_captured(command, "the write load", libc::SIGTERM)?;
        let json = watch_over(running, watch, descendants)?.success("the write load")?;
        let report: Report = serde_json::from_slice(&json).context("cannot read the write load's report")?;
        ensure!(report.verified.errors == 0, "the load found damaged data: {:?}", report.verified.examples);
        Ok(report)
    }

    /// The load's command line.
    fn words(&self, place: &Place, seconds: f64) -> Vec<String> {
        let size = file_bytes(self.lab.pool.size());
        let mut words = vec!["write".to_owned(), "--dir".into(), place.dir.display().to_string()];
        words.extend(["--name".into(), place.name.into(), "--bs".into(), BLOCK_BYTES.to_string()]);
        words.extend(["--pattern".into(), word(self.pattern).into()]);
        words.extend(["--size".into(), size.to_string(), "--apart".into()]);
        words.extend(["--seconds".into(), seconds.to_string()]);
        words
    }

    /// The same with this sync, at the rate.
    fn paced(&self, place: &Place, seconds: f64, sync: &str) -> Vec<String> {
        let mut words = self.words(place, seconds);
        words.extend(["--sync".into(), sync.into()]);
        let rate = self.rate.map(|rate| rate.clamp(1.0, RATE_OPS_MAX).floor().to_string());
        words.extend(rate.into_iter().flat_map(|rate| ["--rate".into(), rate]));
        words
    }
}

impl Place {
    fn new(lab: &Lab, policy: PolicyName) -> Result<Self> {
        let data = lab.work.data("endure");
        lab.fresh_dir(&data)?;
        let version = data.join("PG_VERSION");
        fs::write(&version, "15\n")?;
        lab.identity.own(&version)?;
        for dir in ["base", "base/5", "pg_wal"] {
            lab.fresh_dir(&data.join(dir))?;
        }
        let (dir, name) = match policy {
            PolicyName::Tail => ("pg_wal", "000000010000000000000001"),
            PolicyName::Atomic => ("base/5", "16384"),
        };
        Ok(Self { dir: data.join(dir), data, name })
    }
}
