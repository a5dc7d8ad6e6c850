//! Snapshots: put, list, load, prune.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;

use super::error::{Raw, RepositoryError};
use super::file::{Repository, Result};
use crate::model::{Reading, Snapshot};

/// A snapshot in a list.
#[derive(Clone, Debug, Serialize)]
pub struct SnapshotSummary {
    /// Its number.
    pub id: i64,
    /// When: milliseconds since 1970.
    pub wall_ms: i64,
    /// Of what.
    pub target: String,
    /// The user's word.
    pub label: String,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// Snapshots.
    pub snapshots: usize,
    /// Samples.
    pub samples: usize,
}

impl Repository {
    /// Stores a snapshot and gives it its number.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put(&mut self, snapshot: &mut Snapshot) -> Result<i64> {
        let id = self.change(|c| put(c, snapshot))?;
        snapshot.id = id;
        Ok(id)
    }

    /// All snapshots, oldest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn list(&self) -> Result<Vec<SnapshotSummary>> {
        self.run(|c| {
            let mut select = c.prepare("SELECT id, wall_ms, target, label FROM snapshot ORDER BY id")?;
            let entry = |row: &rusqlite::Row<'_>| {
                Ok(SnapshotSummary {
                    id: row.get(0)?,
                    wall_ms: row.get(1)?,
                    target: row.get(2)?,
                    label: row.get(3)?,
                })
            };
            Ok(select.query_map([], entry)?.collect::<std::result::Result<_, _>>()?)
        })
    }

    /// One snapshot by its number.
    ///
    /// # Errors
    /// If there is none.
    pub fn get(&self, id: i64) -> Result<Snapshot> {
        let found = self.run(|c| {
            let mut select = c.prepare_cached(SELECT)?;
            let columns = select.query_row([id], columns).optional()?;
            columns.map(|(id, head, readings, words)| assemble(id, &head, &readings, &words)).transpose()
        })?;
        found.map_or_else(|| Err(self.missing(&id.to_string())), Ok)
    }

    /// The snapshots of `first`'s target from `first` to `last`.
    ///
    /// # Errors
    /// If one of the two is missing.
    pub fn chain(&self, first: i64, last: i64) -> Result<Vec<Snapshot>> {
        let target = self.get(first)?.target.id;
        self.get(last)?;
        let ids: Vec<i64> = self.run(|c| {
            let mut select =
                c.prepare("SELECT id FROM snapshot WHERE target = ?1 AND id BETWEEN ?2 AND ?3 ORDER BY id")?;
            let ids = select.query_map(params![target, first, last], |row| row.get(0))?;
            Ok(ids.collect::<std::result::Result<_, _>>()?)
        })?;
        ids.into_iter().map(|id| self.get(id)).collect()
    }

    /// The number that a word means: `12`, `first`, `last`, `last-3`.
    ///
    /// # Errors
    /// If there is no such snapshot.
    pub fn resolve(&self, name: &str) -> Result<i64> {
        let all = self.list()?;
        let by_place = match name.strip_prefix("last") {
            Some("") => Some(0),
            Some(back) => back.strip_prefix('-').and_then(|n| n.parse::<usize>().ok()),
            None => None,
        };
        let found = match by_place {
            Some(back) => all.len().checked_sub(back + 1).and_then(|i| all.get(i)),
            None if name == "first" => all.first(),
            None => name.parse::<i64>().ok().and_then(|id| all.iter().find(|entry| entry.id == id)),
        };
        found.map(|entry| entry.id).ok_or_else(|| self.missing(name))
    }

    /// Removes what is older than `before_ms` and in no baseline.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn prune(&mut self, before_ms: i64) -> Result<Pruned> {
        self.change(|c| {
            let kept = "EXISTS (SELECT 1 FROM baseline b WHERE snapshot.id BETWEEN b.first AND b.last)";
            let snapshots = c.execute(&format!("DELETE FROM snapshot WHERE wall_ms < ?1 AND NOT {kept}"), [before_ms])?;
            let in_baseline = |table: &str| {
                format!(
                    "EXISTS (SELECT 1 FROM baseline b JOIN snapshot f ON f.id = b.first JOIN snapshot l ON l.id = b.last \
                     WHERE {table}.target = f.target AND {table}.at_ms BETWEEN f.wall_ms AND l.wall_ms)"
                )
            };
            let old = |table: &str| format!("DELETE FROM {table} WHERE at_ms < ?1 AND NOT {}", in_baseline(table));
            let samples = c.execute(&old("sample"), [before_ms])?;
            c.execute(&old("tick"), [before_ms])?;
            c.execute("DELETE FROM words WHERE id NOT IN (SELECT words FROM snapshot)", [])?;
            Ok(Pruned { snapshots, samples })
        })
    }

    fn missing(&self, name: &str) -> RepositoryError {
        let have = self.list().unwrap_or_default();
        let have = have.first().zip(have.last()).map(|(first, last)| (first.id, last.id));
        RepositoryError::NoSnapshot { path: self.path().into(), name: name.into(), have }
    }
}

const SELECT: &str =
    "SELECT s.id, s.head, s.readings, w.body FROM snapshot s JOIN words w ON w.id = s.words WHERE s.id = ?1";

type Columns = (i64, String, String, String);

fn columns(row: &rusqlite::Row<'_>) -> rusqlite::Result<Columns> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

/// The facts of all readings that have some, by their place.
type Words = BTreeMap<usize, BTreeMap<String, String>>;

pub(super) fn put(c: &Connection, snapshot: &Snapshot) -> std::result::Result<i64, Raw> {
    let facts = snapshot.readings.iter().enumerate().filter(|(_, r)| !r.facts.is_empty());
    let words: Words = facts.map(|(i, r)| (i, r.facts.clone())).collect();
    let bare = |r: &Reading| Reading { facts: BTreeMap::new(), ..r.clone() };
    let readings: Vec<Reading> = snapshot.readings.iter().map(bare).collect();
    let head = Snapshot { readings: Vec::new(), ..snapshot.clone() };
    let words = put_words(c, &serde_json::to_string(&words)?)?;
    c.execute(
        "INSERT INTO snapshot (wall_ms, target, label, head, readings, words) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            snapshot.at.wall_ms,
            snapshot.target.id,
            snapshot.label,
            serde_json::to_string(&head)?,
            serde_json::to_string(&readings)?,
            words
        ],
    )?;
    Ok(c.last_insert_rowid())
}

fn put_words(c: &Connection, body: &str) -> std::result::Result<i64, Raw> {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let hash = hasher.finish() as i64;
    let found = c
        .query_row("SELECT id FROM words WHERE hash = ?1 AND body = ?2", params![hash, body], |row| {
            row.get(0)
        })
        .optional()?;
    if let Some(id) = found {
        return Ok(id);
    }
    c.execute("INSERT INTO words (hash, body) VALUES (?1, ?2)", params![hash, body])?;
    Ok(c.last_insert_rowid())
}

fn assemble(id: i64, head: &str, readings: &str, words: &str) -> std::result::Result<Snapshot, Raw> {
    let mut snapshot: Snapshot = serde_json::from_str(head)?;
    snapshot.id = id;
    snapshot.readings = serde_json::from_str(readings)?;
    let words: Words = serde_json::from_str(words)?;
    for (i, facts) in words {
        if let Some(reading) = snapshot.readings.get_mut(i) {
            reading.facts = facts;
        }
    }
    Ok(snapshot)
}
