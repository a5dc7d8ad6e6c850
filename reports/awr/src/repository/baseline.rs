//! Baselines: periods with a name, kept for ever.

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::error::RepositoryError;
use super::file::{Repository, Result};

/// A period with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// Its name.
    pub name: String,
    /// Its first snapshot.
    pub first: i64,
    /// Its last.
    pub last: i64,
}

impl Repository {
    /// Names a period, or gives a name to another one.
    ///
    /// # Errors
    /// If a snapshot is missing.
    pub fn put_baseline(&mut self, baseline: &Baseline) -> Result<()> {
        self.get(baseline.first)?;
        self.get(baseline.last)?;
        let Baseline { name, first, last } = baseline;
        self.change(|c| {
            c.execute("INSERT OR REPLACE INTO baseline VALUES (?1, ?2, ?3)", params![name, first, last])?;
            Ok(())
        })
    }

    /// All of them by name.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn baselines(&self) -> Result<Vec<Baseline>> {
        self.run(|c| {
            let mut select = c.prepare("SELECT name, first, last FROM baseline ORDER BY name")?;
            let rows = select
                .query_map([], |r| Ok(Baseline { name: r.get(0)?, first: r.get(1)?, last: r.get(2)? }))?;
            Ok(rows.collect::<std::result::Result<_, _>>()?)
        })
    }

    /// One by its name.
    ///
    /// # Errors
    /// If there is none.
    pub fn baseline(&self, name: &str) -> Result<Baseline> {
        let found = self.run(|c| {
            let row = c.query_row("SELECT first, last FROM baseline WHERE name = ?1", [name], |r| {
                Ok(Baseline { name: name.into(), first: r.get(0)?, last: r.get(1)? })
            });
            Ok(row.optional()?)
        })?;
        match found {
            Some(baseline) => Ok(baseline),
            None => {
                let have = self.baselines()?.into_iter().map(|b| b.name).collect();
                Err(RepositoryError::NoBaseline { path: self.path().into(), name: name.into(), have })
            }
        }
    }

    /// Forgets a name. Its snapshots stay until they are pruned.
    ///
    /// # Errors
    /// If there is no such baseline.
    pub fn remove_baseline(&mut self, name: &str) -> Result<()> {
        self.baseline(name)?;
        self.change(|c| {
            c.execute("DELETE FROM baseline WHERE name = ?1", [name])?;
            Ok(())
        })
    }
}
