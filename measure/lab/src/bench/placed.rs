//! The write load where its file and its log lie at places of their own: on a slow disk, in a pool with an area.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use seawall_load::write::{Pattern, Report};

use super::measure::word;
use crate::lab::Lab;
use crate::launch::under;
use crate::pool::Pool;
use crate::process::run;
use crate::side::Preset;

/// A WAL-like name: the preset logs such a file from its first write on.
const NAME: &str = "load.db-wal";

/// One load that overwrites one file.
pub struct Placed<'a> {
    pub lab: &'a Lab,
    /// Where the file lies.
    pub dir: PathBuf,
    /// Its log; `None`: the bare file system.
    pub pool: Option<&'a Pool>,
    /// An fdatasync after each write.
    pub syncs: bool,
    pub pattern: Pattern,
    pub processes: u32,
    /// Bytes of a write, and of the file.
    pub bs: u64,
    pub size: u64,
}

impl Placed<'_> {
    /// Writes the file that is going to be overwritten, without Seawall.
    pub fn prepare(&self) -> Result<()> {
        self.lab.fresh_dir(&self.dir)?;
        let mut load = self.lab.command(&self.lab.tools.load);
        load.args(self.arguments()).args(["--warmup", "0", "--ops", "1"]);
        run(load, "the preparation of the file").map(drop)
    }

    /// Runs until one of these limits, options of the load, is reached. Damage that it finds is an error.
    pub fn run(&self, limits: &[(&str, String)]) -> Result<Report> {
        self.lab.work.sync()?;
        let mut load = self.command();
        load.args(self.arguments());
        limits.iter().for_each(|(limit, value)| {
            load.args([limit, value.as_str()]);
        });
        let json = run(load, "the write load")?;
        let report: Report = serde_json::from_slice(&json).context("the write load's report")?;
        ensure!(report.verified.errors == 0, "damaged data: {:?}", report.verified.examples);
        Ok(report)
    }

    fn command(&self) -> Command {
        let (lab, load) = (self.lab, &self.lab.tools.load);
        let preset = (Preset::Sqlite.name(), Preset::Sqlite.policy());
        self.pool.map_or_else(|| lab.command(load), |pool| under(lab, pool, preset, &self.dir, load))
    }

    fn arguments(&self) -> Vec<OsString> {
        let sync = if self.syncs { "fdatasync" } else { "none" };
        let (bs, size, processes) = (self.bs.to_string(), self.size.to_string(), self.processes.to_string());
        let words = ["write", "--name", NAME, "--bs", &bs, "--size", &size, "--processes", &processes];
        let words = words.into_iter().chain(["--pattern", word(self.pattern), "--sync", sync, "--dir"]);
        words.map(OsString::from).chain([self.dir.clone().into()]).collect()
    }
}
