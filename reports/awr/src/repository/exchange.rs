//! Export and import: lines of JSON, the first one saying what they are.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::baseline::Baseline;
use super::error::{Raw, RepositoryError};
use super::file::{Repository, Result};
use super::samples::{self, Samples};
use super::{schema, snapshots};
use crate::model::Snapshot;

const FORMAT: &str = "seawall snapshots";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Header { format: String, version: i64 },
    Snapshot(Box<Snapshot>),
    Samples { target: String, seen: Samples },
    Baseline(Baseline),
}

/// What an import brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// New snapshots.
    pub snapshots: usize,
    /// Snapshots that were here already.
    pub known: usize,
}

impl Repository {
    /// Writes the snapshots from `first` to `last` of all targets, their samples, and baselines within.
    ///
    /// # Errors
    /// If they cannot be read or written.
    pub fn export(&self, first: i64, last: i64, to: &mut impl Write) -> anyhow::Result<usize> {
        let mut write = |line: &Line| -> anyhow::Result<()> {
            serde_json::to_writer(&mut *to, line)?;
            Ok(to.write_all(b"\n")?)
        };
        write(&Line::Header { format: FORMAT.into(), version: schema::VERSION })?;
        let mut spans: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        let chosen: Vec<_> = self.list()?.into_iter().filter(|e| (first..=last).contains(&e.id)).collect();
        for entry in &chosen {
            let span = spans.entry(entry.target.clone()).or_insert((entry.wall_ms, entry.wall_ms));
            *span = (span.0.min(entry.wall_ms), span.1.max(entry.wall_ms));
            write(&Line::Snapshot(Box::new(self.get(entry.id)?)))?;
        }
        for (target, (from, until)) in spans {
            let seen = self.samples(&target, from, until)?;
            write(&Line::Samples { target, seen })?;
        }
        for baseline in self.baselines()? {
            if baseline.first >= first && baseline.last <= last {
                write(&Line::Baseline(baseline))?;
            }
        }
        Ok(chosen.len())
    }

    /// Adds what an export holds; snapshots get new numbers. All of it or nothing.
    ///
    /// # Errors
    /// The first line that makes no sense.
    pub fn import(&mut self, from: impl BufRead) -> Result<Imported> {
        self.change(|c| {
            let (mut imported, mut numbers) = (Imported::default(), BTreeMap::new());
            for (i, line) in from.lines().enumerate() {
                let wrong = |why: String| Raw::Ours(RepositoryError::Import { line: i + 1, why });
                let line = line.map_err(|e| wrong(e.to_string()))?;
                let line: Line = serde_json::from_str(&line)
                    .map_err(|e| wrong(format!("this is not a line of an export: {e}")))?;
                match line {
                    Line::Header { format, version } if format != FORMAT || version != schema::VERSION => {
                        let wanted = schema::VERSION;
                        return Err(wrong(format!(
                            "{format:?} of version {version}; this program reads {wanted}"
                        )));
                    }
                    Line::Header { .. } => {}
                    _ if i == 0 => return Err(wrong("an export begins with a header".into())),
                    Line::Snapshot(snapshot) => {
                        let known = known(c, &snapshot)?;
                        let id = match known {
                            Some(id) => id,
                            None => snapshots::put(c, &snapshot)?,
                        };
                        let count =
                            if known.is_some() { &mut imported.known } else { &mut imported.snapshots };
                        *count += 1;
                        numbers.insert(snapshot.id, id);
                    }
                    // Samples of snapshots that were here already are here already, too.
                    Line::Samples { .. } if imported.snapshots == 0 => {}
                    Line::Samples { target, seen } => samples::put(c, &target, &unknown(c, &target, seen)?)?,
                    Line::Baseline(b) => {
                        if let (Some(first), Some(last)) = (numbers.get(&b.first), numbers.get(&b.last)) {
                            c.execute(
                                "INSERT OR REPLACE INTO baseline VALUES (?1, ?2, ?3)",
                                params![b.name, first, last],
                            )?;
                        }
                    }
                }
            }
            Ok(imported)
        })
    }
}

fn known(c: &rusqlite::Connection, snapshot: &Snapshot) -> std::result::Result<Option<i64>, Raw> {
    let same = "SELECT id FROM snapshot WHERE target = ?1 AND wall_ms = ?2";
    Ok(c.query_row(same, params![snapshot.target.id, snapshot.at.wall_ms], |row| row.get(0)).optional()?)
}

/// Those of instants that are not here yet.
fn unknown(c: &rusqlite::Connection, target: &str, mut seen: Samples) -> std::result::Result<Samples, Raw> {
    let mut select = c.prepare("SELECT 1 FROM tick WHERE target = ?1 AND at_ms = ?2")?;
    let mut new = Vec::new();
    for at in seen.ticks {
        if !select.exists(params![target, at])? {
            new.push(at);
        }
    }
    seen.samples.retain(|sample| new.binary_search(&sample.at_ms).is_ok());
    seen.ticks = new;
    Ok(seen)
}
