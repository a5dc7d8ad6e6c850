//! Activity samples: what sessions were doing, second by second.

use rusqlite::params;
use serde::{Deserialize, Serialize};

use super::{Repository, Result};
use crate::model::Sample;

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
