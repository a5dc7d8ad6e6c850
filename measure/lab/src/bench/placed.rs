//! The write load, as it is called: one file, or one for each worker, in a directory.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use seawall_load::write::{Pattern, Report};

use super::measure::{Shape, word};
use crate::lab::Lab;
use crate::launch::under;
use crate::pool::Pool;
use crate::process::run;
use crate::side::Preset;

/// One load. Where its file and its log lie at places of their own (a slow disk, a pool with an area), it runs itself.
pub struct Placed<'a> {
    pub lab: &'a Lab,
    /// Where the file lies.
    pub dir: PathBuf,
    /// Its log; `None`: the bare file system.
    pub pool: Option<&'a Pool>,
    /// An fdatasync after each write.
    pub syncs: bool,
    pub shape: Shape,
    /// Bytes of the file.
    pub size: u64,
}

impl Placed<'_> {
    /// A WAL-like name: the preset logs such a file from its first write on.
    fn name(&self) -> &'static str {
        if self.shape.pattern == Pattern::Append { "append.db-wal" } else { "load.db-wal" }
    }

    /// Writes the file that is going to be overwritten, in an empty directory and without Seawall: what is measured must
    /// not begin with a log full of the preparation.
    pub fn prepare(&self) -> Result<()> {
        self.lab.fresh_dir(&self.dir)?;
        let mut load = self.lab.command(&self.lab.tools.load);
        load.args(self.arguments()).args(["--warmup", "0", "--ops", "1"]);
        run(load, "preparing the file").map(drop)
    }

    /// The same, unless an earlier run left it.
    pub fn prepare_once(&self) -> Result<()> {
        if self.dir.join(self.name()).exists() { Ok(()) } else { self.prepare() }
    }

    /// Runs until one of these limits, options of the load, is reached.
    pub fn run(&self, limits: &[(&str, String)]) -> Result<Report> {
        self.lab.work.sync()?;
        let (lab, load) = (self.lab, &self.lab.tools.load);
        let preset = (Preset::Sqlite.name(), Preset::Sqlite.policy());
        let mut command = match self.pool {
            Some(pool) => under(lab, pool, preset, &self.dir, load),
            None => lab.command(load),
        };
        command.args(self.arguments());
        limits.iter().for_each(|(limit, value)| {
            command.args([limit, value.as_str()]);
        });
        report(&run(command, "the write load")?)
    }

    /// The load's arguments, but for limits.
    pub fn arguments(&self) -> Vec<OsString> {
        let Shape { bs, pattern, threads, processes, private } = self.shape;
        let numbers = [
            ("--bs", bs),
            ("--size", self.size),
            ("--threads", threads.into()),
            ("--processes", processes.into()),
        ];
        let words = [
            ("--name", self.name()),
            ("--pattern", word(pattern)),
            ("--sync", if self.syncs { "fdatasync" } else { "none" }),
            ("--layout", if private { "private" } else { "shared" }),
        ];
        let mut args: Vec<OsString> = vec!["write".into(), "--dir".into(), self.dir.clone().into()];
        args.extend(numbers.into_iter().flat_map(|(name, value)| [name.into(), value.to_string().into()]));
        args.extend(words.into_iter().flat_map(|(name, value)| [name.into(), value.into()]));
        args
    }
}

/// What the load printed; damage that it found is an error.
pub fn report(json: &[u8]) -> Result<Report> {
    let report: Report = serde_json::from_slice(json).context("cannot read the write load's report")?;
    ensure!(report.verified.errors == 0, "the load found damaged data: {:?}", report.verified.examples);
    Ok(report)
}
