//! `reopen`: how soon an embedded database commits again after its program was killed.
//!
//! A program is killed at full load, with everything that it started; at once it is started anew, and makes one commit. Timed
//! from the kill to the end of that program. SQLite replays its journal when it is opened, RocksDB its write-ahead log, and
//! LMDB nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use seawall_load::sqlite::JournalMode;
use seawall_load::store::Store;

use super::runs::Runs;
use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::process::{self, descendants, kill_and_wait, pause};
use crate::side::{Preset, Side};
use crate::store::Program;
use crate::table::{self, short};
use crate::{launch, sqlite};

/// What the databases take, bytes.
pub const SPACE: u64 = 4 << 30;

/// How long a killed process may take to end.
const LIMIT: Duration = Duration::from_secs(10);

const SIDES: [Side; 2] = [Side::Fs, Side::Seawall];

/// A database, and how it is started.
enum What {
    Sqlite(JournalMode),
    Store(Program),
}

impl What {
    const NAMES: [&'static str; 4] = ["sqlite_wal", "sqlite_delete", "rocksdb", "lmdb"];

    fn of(lab: &Lab, name: &str) -> Result<Self> {
        Ok(match name {
            "sqlite_wal" => Self::Sqlite(JournalMode::Wal),
            "sqlite_delete" => Self::Sqlite(JournalMode::Delete),
            "rocksdb" => Self::Store(Program::build(lab, Store::Rocksdb, "")?),
            _ => Self::Store(Program::build(lab, Store::Lmdb, "")?),
        })
    }

    /// Where it is, made anew.
    fn prepare(&self, lab: &Lab, side: Side) -> Result<PathBuf> {
        match self {
            Self::Sqlite(journal) => {
                sqlite::create(lab, side, *journal)?;
                Ok(sqlite::dir(lab, side, *journal))
            }
            Self::Store(program) => {
                let dir = lab.data(side, &format!("reopen-{}-{}", side.name(), program.store.name()));
                lab.fresh_dir(&dir)?;
                Ok(dir)
            }
        }
    }

    /// Its program, for as long as it is let; or for a commit, after which a shell says what time it is.
    fn command(&self, lab: &Lab, side: Side, dir: &Path, is_once: bool) -> Result<Command> {
        let (preset, program, words) = match self {
            Self::Sqlite(journal) => {
                let ops = if is_once { "1" } else { "1000000000" };
                let database = dir.join("bank.db");
                let words =
                    ["sqlite", "--seconds", "600", "--ops", ops, "--journal", journal.pragma(), "--db"];
                let words = words.iter().map(OsString::from).chain([database.into()]).collect();
                (Preset::Sqlite, &lab.tools.load, words)
            }
            Self::Store(program) => {
                let seconds = if is_once { "0.002" } else { "600" };
                let words: Vec<OsString> = [dir.as_os_str()]
                    .into_iter()
                    .map(OsString::from)
                    .chain(["run", "sync", seconds].map(OsString::from))
                    .collect();
                let preset = if program.store == Store::Rocksdb { Preset::Rocksdb } else { Preset::Lmdb };
                (preset, &program.path, words)
            }
        };
        if !is_once {
            return launch::command(lab, side, preset, dir, program, words);
        }
        let shell = ["-c", "\"$0\" \"$@\" > /dev/null && date +%s%N"].map(OsString::from);
        let all = shell.into_iter().chain([program.into()]).chain(words);
        launch::command(lab, side, preset, dir, Path::new("/bin/sh"), all)
    }
}

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    What::NAMES.len() * SIDES.len() * scope.rounds
}

/// Measures everything.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for name in What::NAMES {
        let what = What::of(lab, name)?;
        let title = |side: Side| format!("{name}, {}", side.name());
        let told = |ms: &f64| format!("{} ms", short(*ms));
        let runs = Runs::measure(lab, &SIDES, scope.rounds, title, told, |side, _| {
            lab.settle()?;
            let dir = what.prepare(lab, side)?;
            measure(lab, &what, (side, &dir), if scope.quick { 0.5 } else { 3.0 })
        })?;
        lines.push(line(name, &runs));
        rows.push(row(name, &runs));
    }
    let header = ["after kill -9", "bare, ms", "Seawall, ms", "of bare"];
    Ok((rows, table::format(&header, &lines)))
}

/// Milliseconds from the kill to the end of a program that committed. What `seawall run` does after that is not in it.
fn measure(lab: &Lab, what: &What, (side, dir): (Side, &Path), seconds: f64) -> Result<f64> {
    let load =
        process::start(what.command(lab, side, dir, false)?, "the load that is killed", libc::SIGKILL)?;
    pause(Duration::from_secs_f64(seconds))?;
    let begin = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let below = descendants(load.pid());
    process::signal(load.pid(), libc::SIGKILL);
    load.wait()?;
    kill_and_wait(&below, LIMIT)?;
    let said = process::run(what.command(lab, side, dir, true)?, "the program that is started again")?;
    let then: u64 = String::from_utf8_lossy(&said).trim().parse().context("the shell printed no time")?;
    Ok((then as f64 - begin.as_nanos() as f64) / 1e6)
}

fn line(name: &str, runs: &Runs<Side, f64>) -> Vec<String> {
    let ratio = super::runs::told(runs.ratio(Side::Seawall, Side::Fs, |ms| *ms));
    let [bare, seawall] = SIDES.map(|side| runs.told(side, |ms| *ms));
    vec![name.to_owned(), bare, seawall, ratio]
}

fn row(name: &str, runs: &Runs<Side, f64>) -> Fields {
    let row = Fields::default().with("database", name);
    let row = runs.with_figures(
        row,
        &SIDES,
        |side| if side == Side::Fs { "bare" } else { "seawall" },
        &[("ms", |ms| *ms)],
    );
    runs.with_ratios(row, |ms| *ms, &[("seawall_of_bare", Side::Seawall, Side::Fs)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let mut runs = Runs::default();
        SIDES.into_iter().for_each(|side| runs.add(side, 1.5));
        row("lmdb", &runs).assert_keys("reopen");
    }
}
