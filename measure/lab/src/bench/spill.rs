//! `spill`: a burst of commits larger than the pool, onto a disk that is slow: with a spill area behind the pool, and
//! without.
//!
//! The data's disk takes its time over each flush ([`super::slow_disk`]); the area lies on the disk under test. The
//! longest stall is what counts: without an area the log is full at some time, and commits go at the disk's pace.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use seawall_load::write::{Pattern, Report};
use serde::Deserialize;

use super::placed::Placed;
use super::slow_disk::SlowDisk;
use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::pool::Pool;
use crate::side::order;
use crate::spread::Spread;
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
        return Ok((Vec::new(), "spill: not measured, the slow disk needs root\n".into()));
    }
    let scene = Scene::set_up(lab, scope)?;
    let mut runs = Runs::default();
    for round in 0..scope.rounds {
        for who in order(&ALL, round) {
            let measured = scene.measure(who).with_context(|| who.key())?;
            let what = format!("round {}: a burst of commits, {}", round + 1, who.key());
            lab.progress.done(&format!("{what}: {} commits/s", short(measured.report.ops_per_s)));
            runs.add(who, measured);
        }
    }
    let fields = runs.fields(scope)?;
    Ok((vec![fields], runs.table(lab.medium())?))
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
        let slow = SlowDisk::mount(lab, slow_bytes(scope), FLUSH).context("the slow disk")?;
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
            pattern: Pattern::Sequential,
            processes: 1,
            bs: BLOCK_BYTES,
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

type Runs = super::runs::Runs<Who, Measured>;

impl Runs {
    /// The rates with the area against those of `who`.
    fn of(&self, who: Who) -> Result<Spread> {
        self.ratio(Who::Spill, who, rate)
    }

    fn spilled_mb(&self) -> Result<Spread> {
        self.spread(Who::Spill, |measured| measured.spilled as f64 / 1e6)
    }

    fn fields(&self, scope: Scope) -> Result<Fields> {
        let mut row = Fields::default()
            .with("bs", BLOCK_BYTES)
            .with("pool_mb", scope.pool >> 20)
            .with("burst_mb", (scope.pool * BURST) >> 20)
            .with("flush_ms", FLUSH.as_millis() as u64);
        for who in ALL {
            let key = who.key();
            row = row
                .with_spread(&format!("{key}_ops_s"), self.spread(who, rate)?)
                .with_spread(&format!("{key}_p999_us"), self.spread(who, p999_us)?)
                .with_spread(&format!("{key}_longest_us"), self.spread(who, longest_us)?);
        }
        Ok(row
            .with_spread("of_seawall", self.of(Who::Alone)?)
            .with_spread("of_unsafe", self.of(Who::Unsafe)?)
            .with_spread("spilled_mb", self.spilled_mb()?))
    }

    fn table(&self, medium: &str) -> Result<String> {
        let header = ["a burst onto a slow disk", "commits/s", "p99.9 µs", "longest ms"];
        let mut rows = Vec::new();
        for (who, what) in ALL.into_iter().zip([
            "bare file system",
            "Seawall",
            "Seawall with a spill area",
            "bare file system, no sync",
        ]) {
            rows.push(vec![
                what.to_owned(),
                self.spread(who, rate)?.told(short),
                self.spread(who, p999_us)?.told(short),
                self.spread(who, longest_us)?.told(|us| short(us / 1e3)),
            ]);
        }
        let spilled = self.spilled_mb()?.told(short);
        Ok(format!("{}  pools on: {medium}; {spilled} MB went to the area\n", table::format(&header, &rows)))
    }
}

fn rate(measured: &Measured) -> f64 {
    measured.report.ops_per_s
}

fn p999_us(measured: &Measured) -> f64 {
    measured.report.latency.p999_us
}

fn longest_us(measured: &Measured) -> f64 {
    measured.report.latency.max_us
}

#[cfg(test)]
mod tests {
    use super::super::measure::tests::nothing;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() -> Result<()> {
        let mut runs = Runs::default();
        for who in ALL {
            runs.add(who, Measured { report: nothing().report, spilled: 7_000_000 });
        }
        let fields = runs.fields(Scope { quick: false, rounds: 1, pool: POOL })?;
        fields.assert_keys(super::super::keys::SPILL);
        assert!(runs.table("RAM")?.contains("MB went to the area"));
        Ok(())
    }
}
