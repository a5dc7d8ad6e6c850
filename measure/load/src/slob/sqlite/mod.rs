//! SLOB on SQLite.
//!
//! A row fills more than half of a page, so no second one fits beside it; pages of more than 4 KiB get filler for it.
//! There is one writer at a time: sessions that update wait for each other.

mod keeper;
mod names;
mod session;

use std::time::Duration;

use anyhow::{Context, Result};
use rusqlite::Connection;

use super::store::{Database, Keeper, Session};
use super::{CommitMode, RedoStress};
use crate::failure::Failure;
use crate::target::SqliteFile;

/// A writer's turn comes sooner.
const BUSY_LIMIT: Duration = Duration::from_secs(60);

/// A file.
pub struct Sqlite<'a> {
    /// Where it is and how it is opened.
    pub file: &'a SqliteFile,
}

impl Sqlite<'_> {
    fn open(&self) -> Result<Connection> {
        let SqliteFile { path, journal, synchronous } = self.file;
        crate::sqlite::connect(path, *journal, *synchronous, BUSY_LIMIT)
    }
}

impl Database for Sqlite<'_> {
    fn session(&self, mode: CommitMode, stress: RedoStress) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(session::SqliteSession::new(self.open()?, mode, stress, self.file)?))
    }

    fn keeper(&self) -> Result<Box<dyn Keeper>> {
        Ok(Box::new(keeper::SqliteKeeper(self.open().context("cannot open the database")?)))
    }

    fn loaders_max(&self) -> u32 {
        1
    }
}
