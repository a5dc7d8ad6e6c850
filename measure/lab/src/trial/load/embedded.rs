//! Programs that have their store in themselves: db_bench on RocksDB, and ours on SQLite, on LMDB and on plain files.
//! Several run at once, each with a store of its own, where a case asks for that.
//!
//! SQLite's and LMDB's commits are counted afterwards. db_bench keeps no account, so its stores are opened again, every
//! checksum verified and everything read back.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use seawall_load::files;
use seawall_load::installed::Tool;
use seawall_load::sqlite::Report;

use super::Loaded;
use super::installed::loaded;
use crate::case::{DbBench, Files, Load, Measure, Sqlite};
use crate::installed::{random_puts, read, read_back};
use crate::process;
use crate::sqlite;
use crate::store::Program;
use crate::trial::prepare::Prepared;
use crate::trial::server;
use crate::trial::stage::Stage;

/// The load's programs on one configuration.
pub struct Programs<'a> {
    pub stage: &'a Stage<'a>,
    pub prepared: &'a Prepared,
    /// Where the stores are.
    pub data: &'a Path,
}

impl Programs<'_> {
    /// Runs them to their end.
    pub fn run(&self) -> Result<Loaded> {
        let load = self.stage.case.load();
        let commands = self.stores().into_iter().map(|store| match load {
            Load::DbBench(load) => self.db_bench(load, &store),
            Load::Sqlite(_) => self.sqlite(&store),
            Load::Files(load) => self.files(load),
            _ => self.lmdb(&["run", self.sync_word(), &self.stage.run.seconds.to_string()]),
        });
        let said = process::together("the load", commands)?;
        let each = said.iter().map(|said| match load {
            Load::DbBench(_) => {
                let figures = read(Tool::DbBench, said)?;
                Ok(loaded(figures.operations.context("db_bench counted no operations")?, &figures))
            }
            Load::Sqlite(_) => {
                Ok(of_sqlite(&serde_json::from_slice(said).context("cannot read the SQLite load's report")?))
            }
            Load::Files(_) => {
                Ok(of_files(&serde_json::from_slice(said).context("cannot read the load's report")?))
            }
            _ => of_lmdb(said),
        });
        Ok(Loaded::together(each.collect::<Result<_>>()?))
    }

    /// What was acknowledged is there, and whole, as far as the load can tell.
    pub fn check(&self, acknowledged: u64) -> Result<()> {
        if matches!(self.stage.case.load(), Load::Files(_)) {
            // Each replaced the one before.
            return Ok(());
        }
        let mut found = 0;
        for store in self.stores() {
            found += match self.stage.case.load() {
                Load::DbBench(_) => return self.check_db_bench(),
                Load::Sqlite(_) => {
                    let check = self.command(&self.stage.lab.tools.load)?;
                    sqlite::commits_in(self.stage.lab, check, &store)?
                }
                _ => {
                    let said = process::run(self.lmdb(&["check"])?, "the LMDB check")?;
                    said.iter().filter(|byte| **byte == b'\n').count() as u64
                }
            };
        }
        ensure!(found == acknowledged, "{acknowledged} commits were acknowledged, but {found} are there");
        Ok(())
    }

    fn check_db_bench(&self) -> Result<()> {
        for store in self.stores() {
            let mut command = self.command(self.stage.bin)?;
            command.args(read_back(&store));
            let said = process::run(command, "reading back with db_bench")?;
            let said = String::from_utf8_lossy(&said);
            let is_whole = said.contains("readseq") && !said.contains("orruption");
            ensure!(is_whole, "db_bench did not read everything back: {said}");
        }
        Ok(())
    }

    /// Each program's store.
    fn stores(&self) -> Vec<PathBuf> {
        match self.stage.case.load() {
            Load::DbBench(DbBench { programs, .. }) => {
                (0..*programs).map(|n| self.data.join(n.to_string())).collect()
            }
            Load::Sqlite(Sqlite { programs }) => {
                (0..*programs).map(|n| self.data.join(format!("bank{n}.db"))).collect()
            }
            _ => vec![self.data.to_owned()],
        }
    }

    fn command(&self, program: &Path) -> Result<Command> {
        server::command(self.stage.lab, self.prepared, program, self.data)
    }

    fn db_bench(&self, load: &DbBench, store: &Path) -> Result<Command> {
        let mut command = self.command(self.stage.bin)?;
        command.args(random_puts(store, load.threads, self.stage.run.seconds)).arg("--histogram=1");
        self.prepared.settings(self.stage.case).for_each(|(name, value)| {
            command.arg(format!("--{name}={value}"));
        });
        Ok(command)
    }

    fn sqlite(&self, store: &Path) -> Result<Command> {
        let mut command = self.command(&self.stage.lab.tools.load)?;
        command.arg("sqlite").arg("--db").arg(store);
        command.args(["--seconds", &self.stage.run.seconds.to_string()]);
        for (name, value) in self.prepared.settings(self.stage.case) {
            let option = match name {
                "journal_mode" => "--journal",
                "synchronous" => "--synchronous",
                other => bail!(
                    "{other:?} is not a setting of the SQLite load: its settings are journal_mode and synchronous"
                ),
            };
            command.args([option, &value]);
        }
        Ok(command)
    }

    fn files(&self, load: &Files) -> Result<Command> {
        let mut command = self.command(&self.stage.lab.tools.load)?;
        let what = if load.parts { "--parts" } else { "--replace" };
        command.args(["files", what, "--seconds", &self.stage.run.seconds.to_string(), "--dir"]);
        command.arg(self.data).args((self.sync_word() == "nosync").then_some("--nosync"));
        Ok(command)
    }

    fn lmdb(&self, args: &[&str]) -> Result<Command> {
        let mut command = self.command(&Program::place(self.stage.lab, seawall_load::store::Store::Lmdb))?;
        command.arg(self.data).args(args);
        Ok(command)
    }

    fn sync_word(&self) -> &'static str {
        let is_off = self.prepared.setting(self.stage.case, "sync").as_deref() == Some("0");
        if is_off { "nosync" } else { "sync" }
    }
}

fn of_sqlite(report: &Report) -> Loaded {
    let figures = vec![
        (Measure::Throughput, report.tps),
        (Measure::LatencyP99, report.latency.p99_us / 1e3),
        (Measure::Longest, report.latency.max_us / 1e3),
    ];
    Loaded { commits: report.commits, figures }
}

fn of_files(report: &files::Report) -> Loaded {
    let figures = vec![
        (Measure::Throughput, report.rate),
        (Measure::LatencyP99, report.latency.p99_us / 1e3),
        (Measure::Longest, report.latency.max_us / 1e3),
    ];
    Loaded { commits: report.steps, figures }
}

/// One line: commits and seconds.
fn of_lmdb(said: &[u8]) -> Result<Loaded> {
    let said = String::from_utf8_lossy(said);
    let mut words = said.split_whitespace().map(str::parse::<f64>);
    let (Some(Ok(commits)), Some(Ok(seconds))) = (words.next(), words.next()) else {
        bail!("cannot read the LMDB load's report: {said:?}")
    };
    ensure!(commits > 0.0 && seconds > 0.0, "the LMDB load did nothing");
    Ok(Loaded { commits: commits as u64, figures: vec![(Measure::Throughput, commits / seconds)] })
}
