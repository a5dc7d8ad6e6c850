//! `cache`: blocks from the block cache against the page cache, the disk, and no block cache at all.
//!
//! Reads are of one thread, of blocks of 8 KiB in no order, and past the page cache where that would answer instead.
//! Every page that is read is looked at.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use seawall_load::stream::Report;
use seawall_load::write;

use super::runs::{Runs, told};
use super::{Fields, Scope, SectionResult};
use crate::compare::{Work, in_turns};
use crate::lab::Lab;
use crate::launch::under;
use crate::pool::Pool;
use crate::process::run as run_process;
use crate::side::{Preset, order};
use crate::table::{self, short};

/// The file that the cache holds as a whole.
const SMALL: u64 = 64 << 20;
/// The file of which it holds a sixteenth.
const LARGE: u64 = 1 << 30;
/// The block cache.
const CACHE: u64 = 96 << 20;
/// What the section takes on the disk.
pub const SPACE: u64 = LARGE + 3 * SMALL;
/// Bytes of a block.
const BLOCK: &str = "8192";

/// What is measured in each round: keys of the file.
const MEASURED: [&str; 9] = [
    "page_cache_us",
    "cache_us",
    "disk_us",
    "hit_share",
    "hit_share_after_restart",
    "uniform_none_s",
    "uniform_cache_s",
    "writes_none_s",
    "writes_cache_s",
];
/// Ratios of them: name, what is above, what is below.
const RATIOS: [(&str, &str, &str); 5] = [
    ("over_page_cache", "cache_us", "page_cache_us"),
    ("disk_over_cache", "disk_us", "cache_us"),
    ("warm_after_restart", "hit_share_after_restart", "hit_share"),
    ("uniform_of_none", "uniform_cache_s", "uniform_none_s"),
    ("writes_of_none", "writes_cache_s", "writes_none_s"),
];

/// Figures by name, one a round.
type Figures = Runs<&'static str, f64>;

/// How many steps the section takes.
pub fn steps(scope: Scope) -> usize {
    1 + scope.rounds * Step::ALL.len()
}

#[derive(Clone, Copy)]
enum Step {
    PageCache,
    Disk,
    Hits,
    Uniform,
    Writes,
}

/// Whether there is a block cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cached {
    No,
    Yes,
}

/// Turns that the two take within a round, where the difference is small.
const SLICES: usize = 4;

impl Step {
    const ALL: [Step; 5] = [Step::PageCache, Step::Disk, Step::Hits, Step::Uniform, Step::Writes];

    fn title(self) -> &'static str {
        match self {
            Step::PageCache => "reads from the page cache",
            Step::Disk => "reads from the disk",
            Step::Hits => "reads from the block cache, also after a restart",
            Step::Uniform => "reads all over a large file, without and with a block cache",
            Step::Writes => "writes, without and with a block cache",
        }
    }
}

fn fields(figures: &Figures) -> Fields {
    let row = MEASURED
        .iter()
        .fold(Fields::default(), |row, name| row.with_spread(name, figures.spread(name, |figure| *figure)));
    figures.with_ratios(row, |figure| *figure, &RATIOS)
}

fn table(figures: &Figures, medium: &str) -> String {
    let rows = [
        ("8 KiB, µs; beside it the page cache", "cache_us", "page_cache_us"),
        ("8 KiB, µs; beside it this disk", "cache_us", "disk_us"),
        ("answered after a restart; beside it before", "hit_share_after_restart", "hit_share"),
        ("reads/s all over a file 11 times its size; beside it none", "uniform_cache_s", "uniform_none_s"),
        ("writes/s; beside it none", "writes_cache_s", "writes_none_s"),
    ];
    let row = |(what, cache, other): (&str, &'static str, &'static str)| {
        let [with, beside] = [cache, other].map(|name| figures.told(name, |figure| *figure));
        vec![what.into(), with, beside, told(figures.ratio(cache, other, |figure| *figure))]
    };
    let table = table::format(&["Block cache", "with it", "beside", "ratio"], &rows.map(row));
    format!("{table}  block cache and log on: {medium}\n")
}

/// The section.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let scene = Scene::new(lab, scope)?;
    let mut figures = Figures::default();
    for round in 0..scope.rounds {
        for step in order(&Step::ALL, round) {
            let what = format!("round {}: {}", round + 1, step.title());
            lab.progress.doing(&what);
            lab.settle()?;
            let said = scene.take(step, round).with_context(|| what.clone())?;
            said.iter().for_each(|(name, figure)| figures.add(name, *figure));
            let said: Vec<_> =
                said.iter().map(|(name, figure)| format!("{name} {}", short(*figure))).collect();
            lab.progress.done(&format!("{what}: {}", said.join(", ")));
        }
    }
    Ok((vec![fields(&figures)], table(&figures, lab.medium())))
}

/// Files and pools. The one without a cache is the lab's.
struct Scene<'a> {
    lab: &'a Lab,
    cached: Pool,
    dir: PathBuf,
    seconds: f64,
}

impl<'a> Scene<'a> {
    fn new(lab: &'a Lab, scope: Scope) -> Result<Self> {
        lab.progress.doing("the files that are read");
        let dir = lab.work.data("cache");
        lab.fresh_dir(&dir)?;
        let cached = Pool::create(&lab.tools, &lab.identity, scope.pool, "-cached")?.with_cache(CACHE);
        let scene = Scene { lab, cached, dir, seconds: if scope.quick { 0.5 } else { 2.0 } };
        for (name, size) in [("small", SMALL), ("large", LARGE)] {
            let size = size.to_string();
            let mut write = lab.command(&lab.tools.load);
            write.args(["stream", "--op", "write", "--size", &size, "--file"]).arg(scene.dir.join(name));
            run_process(write, "writing a file")?;
        }
        lab.progress.done("the files that are read");
        Ok(scene)
    }

    fn take(&self, step: Step, round: usize) -> Result<Vec<(&'static str, f64)>> {
        let p50 = |report: &Report| report.latency.map_or(0.0, |latency| latency.p50_us);
        let answered = |report: &Report| 1.0 - report.from_disk;
        Ok(match step {
            Step::PageCache => vec![("page_cache_us", p50(&self.read(None, &["--warm-up", "0.5"])?))],
            Step::Disk => vec![("disk_us", p50(&self.read(None, &["--direct"])?))],
            Step::Hits => {
                let warm = self.read(Some(&self.cached), &["--direct", "--warm-up", "6"])?;
                let again = self.read(Some(&self.cached), &["--direct"])?;
                vec![
                    ("cache_us", p50(&warm)),
                    ("hit_share", answered(&warm)),
                    ("hit_share_after_restart", answered(&again)),
                ]
            }
            Step::Uniform => self.both(["uniform_none_s", "uniform_cache_s"], round, |pool| {
                Ok(self
                    .read_file(Some(pool), ("large", LARGE), self.seconds / SLICES as f64, &["--direct"])?
                    .blocks_s)
            })?,
            Step::Writes => self.both(["writes_none_s", "writes_cache_s"], round, |pool| {
                Ok(self.write(pool, self.seconds / SLICES as f64)?.ops_per_s)
            })?,
        })
    }

    /// Rates without and with the cache, in turns.
    fn both(
        &self,
        names: [&'static str; 2],
        round: usize,
        run: impl Fn(&Pool) -> Result<f64>,
    ) -> Result<Vec<(&'static str, f64)>> {
        let done = in_turns(&[Cached::No, Cached::Yes], round, SLICES, |cached| {
            self.lab.settle()?;
            Ok(Work { rate: run(self.pool(cached))?, count: 0 })
        })?;
        Ok(names.into_iter().zip(done.into_values().map(|work| work.rate)).collect())
    }

    fn pool(&self, cached: Cached) -> &Pool {
        match cached {
            Cached::No => &self.lab.pool,
            Cached::Yes => &self.cached,
        }
    }

    fn read(&self, pool: Option<&Pool>, more: &[&str]) -> Result<Report> {
        self.read_file(pool, ("small", SMALL), self.seconds, more)
    }

    fn read_file(
        &self,
        pool: Option<&Pool>,
        (name, size): (&str, u64),
        seconds: f64,
        more: &[&str],
    ) -> Result<Report> {
        let (size, seconds) = (size.to_string(), seconds.to_string());
        let mut args =
            vec!["stream", "--op", "random", "--bs", BLOCK, "--size", &size, "--seconds", &seconds];
        args.extend(more);
        let mut args: Vec<OsString> = args.into_iter().map(Into::into).collect();
        args.extend(["--file".into(), self.dir.join(name).into_os_string()]);
        serde_json::from_slice(&self.load(pool, &self.dir, args)?).context("cannot read the load's report")
    }

    /// Of a file of its own for each pool: what one has logged must not be behind the other's back.
    fn write(&self, pool: &Pool, seconds: f64) -> Result<write::Report> {
        let dir = self.dir.join(if pool.path() == self.cached.path() { "written-cached" } else { "written" });
        if !dir.exists() {
            self.lab.fresh_dir(&dir)?;
        }
        let (size, seconds) = (SMALL.to_string(), seconds.to_string());
        let args = [
            "write",
            "--name",
            "load.db-wal",
            "--bs",
            BLOCK,
            "--pattern",
            "random",
            "--size",
            &size,
            "--seconds",
            &seconds,
        ];
        let mut args: Vec<OsString> = args.map(Into::into).into();
        args.extend(["--dir".into(), dir.clone().into_os_string()]);
        serde_json::from_slice(&self.load(Some(pool), &dir, args)?).context("cannot read the load's report")
    }

    fn load(&self, pool: Option<&Pool>, dir: &Path, args: Vec<OsString>) -> Result<Vec<u8>> {
        let (preset, program) = ((Preset::Sqlite.name(), Preset::Sqlite.policy()), &self.lab.tools.load);
        let mut command = match pool {
            Some(pool) => under(self.lab, pool, preset, dir, program),
            None => self.lab.command(program),
        };
        command.args(args);
        run_process(command, "the load")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        fields(&Figures::default()).assert_keys("cache");
    }
}
