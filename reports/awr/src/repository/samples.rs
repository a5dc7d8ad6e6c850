//! Activity samples: what sessions were doing, second by second.

use rusqlite::params;
use serde::{Deserialize, Serialize};

use super::file::{Repository, Result};
use crate::model::{Sample, Snapshot};
use crate::period::passed;

/// A wall clock that moved this much more or less than time did has jumped.
const JUMP_MS: i64 = 2000;

/// All samples of a period.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Samples {
    /// Instants at which somebody looked, whether or not anything was going on.
    pub ticks: Vec<i64>,
    /// What was seen.
    pub samples: Vec<Sample>,
}

impl Repository {
    /// Stores what was seen at some instants.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put_samples(&mut self, target: &str, seen: &Samples) -> Result<()> {
        self.change(|c| put(c, target, seen))
    }

    /// What was seen between snapshots of one target, whatever their wall clock did.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn samples_between(&self, snapshots: &[Snapshot]) -> Result<Samples> {
        let mut all = Samples::default();
        let Some(first) = snapshots.first() else { return Ok(all) };
        for (from, to) in ranges(snapshots) {
            let part = self.samples(&first.target.id, from, to)?;
            all.ticks.extend(part.ticks);
            all.samples.extend(part.samples);
        }
        Ok(all)
    }

    /// What was seen from one instant to another.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn samples(&self, target: &str, from_ms: i64, to_ms: i64) -> Result<Samples> {
        self.run(|c| {
            let range = params![target, from_ms, to_ms];
            let mut select =
                c.prepare("SELECT at_ms FROM tick WHERE target = ?1 AND at_ms BETWEEN ?2 AND ?3")?;
            let ticks = select.query_map(range, |row| row.get(0))?.collect::<std::result::Result<_, _>>()?;
            let mut select = c.prepare(
                "SELECT at_ms, foreground, wait_type, wait_event, query_id, sessions FROM sample \
                 WHERE target = ?1 AND at_ms BETWEEN ?2 AND ?3 ORDER BY at_ms",
            )?;
            let sample = |row: &rusqlite::Row<'_>| {
                Ok(Sample {
                    at_ms: row.get(0)?,
                    foreground: row.get(1)?,
                    wait_type: row.get(2)?,
                    wait_event: row.get(3)?,
                    query_id: row.get(4)?,
                    sessions: row.get(5)?,
                })
            };
            let samples = select.query_map(range, sample)?.collect::<std::result::Result<_, _>>()?;
            Ok(Samples { ticks, samples })
        })
    }
}

/// Stretches of the wall clock that snapshots cover, rising and apart. Where it jumped, time went on from where it
/// was before and ended where it is after: both may hold samples.
fn ranges(snapshots: &[Snapshot]) -> Vec<(i64, i64)> {
    let pair = |pair: &[Snapshot]| {
        let [a, b] = [&pair[0].at, &pair[1].at];
        let passed = (passed(a, b) * 1000.0) as i64;
        let is_jump = (b.wall_ms - a.wall_ms - passed).abs() > JUMP_MS;
        let jumped = [(a.wall_ms, a.wall_ms + passed), (b.wall_ms - passed, b.wall_ms)];
        if is_jump { jumped.to_vec() } else { vec![(a.wall_ms, b.wall_ms)] }
    };
    let mut found: Vec<_> = snapshots.windows(2).flat_map(pair).collect();
    found.sort_unstable();
    let mut apart: Vec<(i64, i64)> = Vec::new();
    for (from, to) in found {
        match apart.last_mut() {
            Some((_, end)) if from <= *end => *end = to.max(*end),
            _ => apart.push((from, to)),
        }
    }
    apart
}

pub(super) fn put(
    c: &rusqlite::Connection,
    target: &str,
    seen: &Samples,
) -> std::result::Result<(), super::error::Raw> {
    // Two samplers of one target do no harm: the instant counts once.
    let mut tick = c.prepare_cached("INSERT OR IGNORE INTO tick VALUES (?1, ?2)")?;
    for at in &seen.ticks {
        tick.execute(params![target, at])?;
    }
    let mut sample = c.prepare_cached("INSERT INTO sample VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for s in &seen.samples {
        sample.execute(params![
            target,
            s.at_ms,
            s.foreground,
            s.wait_type,
            s.wait_event,
            s.query_id,
            s.sessions
        ])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Instant;

    #[test]
    fn a_wall_clock_that_jumps_loses_no_samples() {
        let at = |wall_ms, up_s| Snapshot {
            at: Instant { wall_ms, up_s, boot_id: "b".into() },
            ..Snapshot::default()
        };
        let steady = [at(0, 0.0), at(60_000, 60.0), at(120_300, 120.0)];
        assert_eq!(ranges(&steady), [(0, 120_300)]);
        let back = [at(3_600_000, 0.0), at(60_000, 60.0), at(120_000, 120.0)];
        assert_eq!(ranges(&back), [(0, 120_000), (3_600_000, 3_660_000)]);
        let forward = [at(0, 0.0), at(3_660_000, 60.0)];
        assert_eq!(ranges(&forward), [(0, 60_000), (3_600_000, 3_660_000)]);
    }
}
