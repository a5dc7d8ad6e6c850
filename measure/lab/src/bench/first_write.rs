//! `first_write`: what the first commit of a new SQLite database takes, with all that is made for it: its files, their
//! place in the log, the guard.
//!
//! One program makes one database after another in a directory of its own, and looks at each of them afterwards.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use seawall_load::sqlite::{JournalMode, Report};

use super::runs::{Runs, told};
use super::{Fields, Scope, SectionResult};
use crate::identity::Identity;
use crate::lab::Lab;
use crate::launch::under;
use crate::mount::Mount;
use crate::pool::Pool;
use crate::process::run as run_process;
use crate::side::{Preset, Side};
use crate::table::{self, short};

/// What the section takes on the disk.
pub const SPACE: u64 = 1 << 30;
const JOURNALS: [JournalMode; 2] = [JournalMode::Wal, JournalMode::Delete];
/// Whoever waits for the disk is cut off.
const SECONDS: &str = "10";

/// Who makes databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Fs,
    Seawall,
    /// As root, whose daemon is asked before a stranger opens what is guarded.
    Root,
    Mount,
    Unsafe,
}

impl Who {
    const ALL: [Self; 5] = [Self::Fs, Self::Seawall, Self::Root, Self::Mount, Self::Unsafe];

    /// Its name in the file.
    fn key(self) -> &'static str {
        match self {
            Self::Fs => "fs",
            Self::Seawall => "seawall",
            Self::Root => "root",
            Self::Mount => "mount",
            Self::Unsafe => "unsafe",
        }
    }

    fn side(self) -> Side {
        match self {
            Self::Mount => Side::Mount,
            Self::Seawall | Self::Root => Side::Seawall,
            Self::Fs | Self::Unsafe => Side::Fs,
        }
    }
}

/// Those that can be measured here.
fn measured() -> Vec<Who> {
    let is_root = Identity::find().is_ok_and(|identity| identity.is_other());
    Who::ALL.into_iter().filter(|who| *who != Who::Root || is_root).collect()
}

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    JOURNALS.len() * measured().len() * scope.rounds
}

/// Measures everything.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let root = Pool::create(&lab.tools, &Identity::ourselves(), scope.pool, "-root")?;
    let scene = Scene { lab, root, mount: Mount::start(lab, Preset::Sqlite)?, scope };
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for journal in JOURNALS {
        let runs = scene.runs(journal)?;
        rows.push(fields(journal, &runs));
        lines.extend(table_lines(journal, &runs));
    }
    scene.mount.end()?;
    let header = ["the first commit of a new database", "µs", "p99 µs", "of bare fs"];
    Ok((rows, format!("{}  pools on: {}\n", table::format(&header, &lines), lab.medium())))
}

struct Scene<'a> {
    lab: &'a Lab,
    root: Pool,
    mount: Mount<'a>,
    scope: Scope,
}

impl Scene<'_> {
    fn runs(&self, journal: JournalMode) -> Result<Runs<Who, Report>> {
        let title = |who: Who| format!("new databases, {}, {}", journal.pragma(), who.key());
        let told = |report: &Report| format!("{} µs", short(report.latency.p50_us));
        let rounds = self.scope.rounds;
        Runs::measure(self.lab, &measured(), rounds, title, told, |who, _| self.measure(journal, who))
    }

    fn measure(&self, journal: JournalMode, who: Who) -> Result<Report> {
        let dir = self.lab.data(who.side(), &format!("first-{}-{}", who.key(), journal.pragma()));
        self.lab.fresh_dir(&dir)?;
        if who == Who::Root {
            std::os::unix::fs::chown(&dir, Some(0), Some(0)).context("cannot give the directory to root")?;
        }
        self.mount.settle()?;
        self.root.drain_if_running()?;
        self.lab.settle()?;
        let json = run_process(self.load(journal, who, &dir), "the SQLite load")?;
        serde_json::from_slice(&json).context("cannot read the SQLite load's report")
    }

    fn load(&self, journal: JournalMode, who: Who, dir: &Path) -> Command {
        let (lab, program) = (self.lab, &self.lab.tools.load);
        let mut load = match who {
            Who::Fs | Who::Mount | Who::Unsafe => lab.command(program),
            Who::Seawall => under(lab, &lab.pool, ("sqlite", "tail"), dir, program),
            Who::Root => under(lab, &self.root, ("sqlite", "tail"), dir, program),
        };
        let databases = if self.scope.quick { "30" } else { "200" };
        let synchronous = if who == Who::Unsafe { "off" } else { "full" };
        load.args(["sqlite", "--anew", "--journal", journal.pragma(), "--synchronous", synchronous]);
        load.args(["--seconds", SECONDS, "--ops", databases, "--db"]).arg(dir.join("new.db"));
        load
    }
}

fn p50_us(report: &Report) -> f64 {
    report.latency.p50_us
}

fn p99_us(report: &Report) -> f64 {
    report.latency.p99_us
}

fn fields(journal: JournalMode, runs: &Runs<Who, Report>) -> Fields {
    let row = Fields::default().with("journal", journal.pragma());
    let row = runs.with_figures(row, &Who::ALL, Who::key, &[("us", p50_us), ("p99_us", p99_us)]);
    Who::ALL.into_iter().filter(|who| *who != Who::Fs).fold(row, |row, who| {
        row.with_spread(&format!("{}_of_fs", who.key()), runs.ratio(who, Who::Fs, p50_us))
    })
}

fn table_lines(journal: JournalMode, runs: &Runs<Who, Report>) -> Vec<Vec<String>> {
    let titles = ["bare file system", "Seawall", "Seawall, by root", "Seawall's mount", "bare, no sync"];
    let line = |(who, title): (Who, &str)| {
        vec![
            format!("{}, {title}", journal.pragma()),
            runs.told(who, p50_us),
            runs.told(who, p99_us),
            told(runs.ratio(who, Who::Fs, p50_us)),
        ]
    };
    Who::ALL.into_iter().zip(titles).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page_whoever_was_measured() {
        let runs = Runs::default();
        fields(JournalMode::Wal, &runs).assert_keys("first_write");
        assert_eq!(table_lines(JournalMode::Wal, &runs).len(), Who::ALL.len());
    }
}
