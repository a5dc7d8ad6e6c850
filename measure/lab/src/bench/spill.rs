//! `spill`: a burst of commits larger than the pool, onto a disk that is slow: with a spill area behind the pool, and
//! without.
//!
//! The data's disk takes its time over each flush ([`crate::slow_disk`]); the area lies on the disk under test. The
//! longest stall is what counts: without an area the log is full at some time, and commits go at the disk's pace.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use seawall_load::write::{Pattern, Report};
use serde::Deserialize;

use super::measure::Shape;
use super::placed::Placed;
use super::runs::{Figure, Runs};
use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::pool::Pool;
use crate::slow_disk::SlowDisk;
use crate::table::{self, short};

/// Bytes of the pools in memory: a small module.
pub const POOL: u64 = 64 << 20;
const FLUSH: Duration = Duration::from_millis(200);
const BLOCK_BYTES: u64 = 8192;
/// What is committed, in pools.
const BURST: u64 = 8;
/// Whoever waits for the slow disk is cut off.
const SECONDS: f64 = 10.0;

/// Who commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Fs,
    /// Seawall, and what its pool has no room for waits for the disk.
    Alone,
    Spill,
    /// On the bare file system without syncs.
    Unsafe,
}

const ALL: [Who; 4] = [Who::Fs, Who::Alone, Who::Spill, Who::Unsafe];

impl Who {
    /// Its name in the file.
    fn key(self) -> &'static str {
        match self {
            Who::Fs => "fs_sync",
            Who::Alone => "seawall",
            Who::Spill => "spill",
            Who::Unsafe => "fs_nosync",
        }
    }
}

/// The slow disk's size, twice what its files take of memory: on one that is nearly full ext4 writes back before it
/// lets anybody write.
fn slow_bytes(scope: Scope) -> u64 {
    scope.pool * BURST * ALL.len() as u64 * 2
}

/// What the area takes on the disk under test.
pub fn space(scope: Scope) -> u64 {
    scope.pool * BURST * 3
}

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    if SlowDisk::is_possible() { ALL.len() * scope.rounds } else { 0 }
}

/// Measures everything. Nothing where we may not mount the slow disk.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    if !SlowDisk::is_possible() {
        return Ok((Vec::new(), "spill: not measured (mounting the slow disk needs root)\n".into()));
    }
    let scene = Scene::set_up(lab, scope)?;
    let title = |who: Who| format!("a burst of commits, {}", who.key());
    let told = |burst: &Measured| format!("{} commits/s", short(burst.report.ops_per_s));
    let runs = Runs::measure(lab, &ALL, scope.rounds, title, told, |who, _| scene.measure(who))?;
    Ok((vec![fields(&runs, scope)], table(&runs, lab.medium())))
}

/// A slow disk and two pools.
struct Scene<'a> {
    lab: &'a Lab,
    burst: u64,
    pools: BTreeMap<Who, Pool>,
    /// Behind them: their files lie on it.
    slow: SlowDisk,
}

impl<'a> Scene<'a> {
    fn set_up(lab: &'a Lab, scope: Scope) -> Result<Self> {
        let slow = SlowDisk::mount(lab, slow_bytes(scope), FLUSH).context("cannot mount the slow disk")?;
        let dir = lab.work.data("spill");
        lab.fresh_dir(&dir)?;
        let burst = scope.pool * BURST;
        let (tools, identity) = (&lab.tools, &lab.identity);
        let alone = Pool::create(tools, identity, scope.pool, "-alone")?;
        let behind = (dir.join("area"), 2 * burst);
        let spill = Pool::with_area(tools, identity, scope.pool, "-spill", behind)?;
        let pools = [(Who::Alone, alone), (Who::Spill, spill)].into();
        let scene = Scene { lab, burst, pools, slow };
        ALL.iter().try_for_each(|who| scene.load(*who).prepare())?;
        Ok(scene)
    }

    fn load(&self, who: Who) -> Placed<'_> {
        Placed {
            lab: self.lab,
            dir: self.slow.path().join(who.key()),
            pool: self.pools.get(&who),
            syncs: who != Who::Unsafe,
            shape: Shape::shared(BLOCK_BYTES, Pattern::Sequential, 1, 1),
            size: self.burst,
        }
    }

    fn measure(&self, who: Who) -> Result<Measured> {
        let limits = [("--sustained", self.burst.to_string()), ("--seconds", SECONDS.to_string())];
        let report = self.load(who).run(&limits)?;
        let Some(pool) = self.pools.get(&who) else { return Ok(Measured { report, spilled: 0 }) };
        let spilled = pool.status::<Status>()?.spill.map_or(0, |spill| spill.spilled_bytes);
        pool.stop()?;
        Ok(Measured { report, spilled })
    }
}

/// The part of `seawall status --json` that is asked for.
#[derive(Deserialize)]
struct Status {
    spill: Option<Spill>,
}

#[derive(Deserialize)]
struct Spill {
    spilled_bytes: u64,
}

/// One burst.
struct Measured {
    report: Report,
    /// Bytes that went to the area.
    spilled: u64,
}

fn rate(burst: &Measured) -> f64 {
    burst.report.ops_per_s
}

fn spilled_mb(burst: &Measured) -> f64 {
    burst.spilled as f64 / 1e6
}

const FIGURES: [Figure<Measured>; 3] = [
    ("ops_s", rate),
    ("p999_us", |burst| burst.report.latency.p999_us),
    ("longest_us", |burst| burst.report.latency.max_us),
];

fn fields(runs: &Runs<Who, Measured>, scope: Scope) -> Fields {
    let row = Fields::default()
        .with("bs", BLOCK_BYTES)
        .with("pool_mb", scope.pool >> 20)
        .with("burst_mb", (scope.pool * BURST) >> 20)
        .with("flush_ms", FLUSH.as_millis() as u64);
    let row = runs.with_figures(row, &ALL, Who::key, &FIGURES);
    let ratios = [("of_seawall", Who::Spill, Who::Alone), ("of_unsafe", Who::Spill, Who::Unsafe)];
    runs.with_ratios(row, rate, &ratios).with_spread("spilled_mb", runs.spread(Who::Spill, spilled_mb))
}

fn table(runs: &Runs<Who, Measured>, medium: &str) -> String {
    let header = ["a burst onto a slow disk", "commits/s", "p99.9 µs", "longest µs"];
    let titles = ["bare file system", "Seawall", "Seawall with a spill area", "bare file system, no sync"];
    let line = |(who, title): (Who, &str)| {
        let mut line = vec![title.to_owned()];
        line.extend(FIGURES.map(|(_, figure)| runs.told(who, figure)));
        line
    };
    let lines: Vec<_> = ALL.into_iter().zip(titles).map(line).collect();
    let spilled = runs.told(Who::Spill, spilled_mb);
    format!("{}  pools on: {medium}; {spilled} MB went to the area\n", table::format(&header, &lines))
}

#[cfg(test)]
mod tests {
    use super::super::measure::tests::nothing;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let mut runs = Runs::default();
        for who in ALL {
            runs.add(who, Measured { report: nothing().report, spilled: 7_000_000 });
        }
        fields(&runs, Scope { quick: false, rounds: 1, pool: POOL }).assert_keys("spill");
        assert!(table(&runs, "RAM").contains("MB went to the area"));
    }
}
