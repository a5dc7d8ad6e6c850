//! `names`: a program that writes a new file, syncs it, renames it over the old one and syncs the directory, again and again.
//!
//! On file systems of their own that keep the order of names, an ext4 with a journal and an XFS, and on the data's disk as it
//! is.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use seawall_load::files::Report;

use super::runs::Runs;
use super::{Fields, Scope, SectionResult};
use crate::identity::Identity;
use crate::lab::Lab;
use crate::launch::under;
use crate::process::run as run_process;
use crate::side::order;
use crate::spread::Spread;
use crate::table::{self, short};
use crate::trial::mount::{Files, LoopDisk};

/// What the section takes on the disk.
pub const SPACE: u64 = 2 * IMAGE;
const IMAGE: u64 = 1 << 30;
/// The pool whose log is on the disk.
const LOG: u64 = 128 << 20;
const FILE: &str = "4 KiB";

/// Who does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Fs,
    Seawall,
    /// With the log on the data's disk.
    Block,
    Unsafe,
    Control,
}

impl Who {
    const ALL: [Self; 5] = [Self::Fs, Self::Seawall, Self::Block, Self::Unsafe, Self::Control];

    /// Its name in the file, and for a person.
    fn named(self) -> (&'static str, &'static str) {
        match self {
            Self::Fs => ("fs", "bare file system"),
            Self::Seawall => ("seawall", "Seawall"),
            Self::Block => ("block", "Seawall, its log on the disk"),
            Self::Unsafe => ("unsafe", "bare, no sync"),
            Self::Control => ("control", "bare, no sync, again"),
        }
    }
}

/// Where the files are.
fn places() -> Vec<Option<Files>> {
    let is_root = Identity::find().is_ok_and(|identity| identity.is_other());
    let own = if is_root { &[Some(Files::Ext4), Some(Files::Xfs)][..] } else { &[] };
    [own, &[None]].concat()
}

/// What is missing is named before anything is measured.
pub fn find_programs() -> Result<()> {
    let is_there = |program: &str| std::process::Command::new(program).arg("-V").output().is_ok();
    let missing = places().into_iter().flatten().map(Files::maker).find(|program| !is_there(program));
    ensure!(missing.is_none(), "{} is not installed: make deps", missing.unwrap_or_default());
    Ok(())
}

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    places().len() * Who::ALL.len() * scope.rounds
}

/// Measures everything.
pub fn run(lab: &mut Lab, scope: Scope) -> Result<SectionResult> {
    let rows = places().into_iter().map(|files| row(lab, scope, files)).collect::<Result<Vec<_>>>()?;
    let table = format!("{}  pool on: {}\n", table(&rows), lab.medium());
    Ok((rows.iter().map(Row::fields).collect(), table))
}

fn row(lab: &mut Lab, scope: Scope, files: Option<Files>) -> Result<Row> {
    let disk = files.map(|files| LoopDisk::of(lab, "names", IMAGE, files)).transpose()?;
    let at = disk.as_ref().map_or_else(|| lab.work.data("names"), |disk| disk.path().join("names"));
    let mut row = Row { files: files.map_or("data", Files::name), runs: Runs::default() };
    for round in 0..scope.rounds {
        for who in order(&Who::ALL, round) {
            let (key, title) = who.named();
            let report = match who {
                Who::Block => lab.on_block(LOG, |lab| measure(lab, scope, who, &at)),
                _ => measure(lab, scope, who, &at),
            };
            let report = report.context(key)?;
            let rate = short(report.rate);
            lab.progress.done(&format!(
                "round {}: new files on {}, {title}: {rate} a second",
                round + 1,
                row.files
            ));
            row.runs.add(who, report);
        }
    }
    lab.pool.drain_if_running()?;
    Ok(row)
}

fn measure(lab: &Lab, scope: Scope, who: Who, at: &Path) -> Result<Report> {
    let dir: PathBuf = at.to_owned();
    lab.fresh_dir(&dir)?;
    lab.settle()?;
    let program = &lab.tools.load;
    let mut load = match who {
        Who::Seawall | Who::Block => under(lab, &lab.pool, ("any", "tail"), &dir, program),
        Who::Fs | Who::Unsafe | Who::Control => lab.command(program),
    };
    load.args(["files", "--replace", "--seconds", if scope.quick { "1" } else { "4" }, "--dir"]).arg(&dir);
    load.args(matches!(who, Who::Unsafe | Who::Control).then_some("--nosync"));
    let json = run_process(load, "the load of files")?;
    serde_json::from_slice(&json).context("the load's report")
}

/// The runs on one file system.
struct Row {
    files: &'static str,
    runs: Runs<Who, Report>,
}

impl Row {
    fn over(&self, under: Who) -> Option<Spread> {
        self.runs.ratio(Who::Seawall, under, rate).ok()
    }

    fn fields(&self) -> Fields {
        let mut row = Fields::default().with("files", self.files);
        for (name, figure) in [("ops_s", rate as fn(&Report) -> f64), ("p50_us", p50), ("p99_us", p99)] {
            for who in Who::ALL {
                let key = format!("{}_{name}", who.named().0);
                row = row.with_spread_if_any(&key, self.runs.spread(who, figure).ok());
            }
        }
        row.with_spread_if_any("speedup", self.over(Who::Fs))
            .with_spread_if_any("block_speedup", self.runs.ratio(Who::Block, Who::Fs, rate).ok())
            .with_spread_if_any("of_unsafe", self.over(Who::Unsafe))
            .with_spread_if_any("control", self.runs.ratio(Who::Control, Who::Unsafe, rate).ok())
    }

    fn lines(&self) -> Vec<Vec<String>> {
        let cell = |spread: Option<Spread>| spread.map_or("–".to_owned(), |s| s.told(short));
        let of_fs = |who| self.runs.ratio(who, Who::Fs, rate).ok();
        let line = |who: Who| {
            vec![
                format!("{}, {}", self.files, who.named().1),
                cell(self.runs.spread(who, rate).ok()),
                cell(self.runs.spread(who, p50).ok()),
                cell(self.runs.spread(who, p99).ok()),
                cell(of_fs(who)),
            ]
        };
        Who::ALL.into_iter().map(line).collect()
    }
}

fn table(rows: &[Row]) -> String {
    let title = format!("a new file of {FILE}, fsync, rename, fsync of the directory");
    let header = [&title, "a second", "p50 µs", "p99 µs", "of bare fs"];
    table::format(&header, &rows.iter().flat_map(Row::lines).collect::<Vec<_>>())
}

fn rate(report: &Report) -> f64 {
    report.rate
}

fn p50(report: &Report) -> f64 {
    report.latency.p50_us
}

fn p99(report: &Report) -> f64 {
    report.latency.p99_us
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let row = Row { files: "data", runs: Runs::default() };
        row.fields().assert_keys(keys::NAMES);
        assert_eq!(row.lines().len(), Who::ALL.len());
    }
}
