//! SLOB on PostgreSQL.
//!
//! A row of 19 times 128 bytes is kept whole in its block (storage `plain`: no compression, no TOAST) and alone in it
//! (the smallest fillfactor). Three versions of it fit into 8 KiB, so an update stays in the block (HOT).
//! Statements are held to the index: a planner that reads a small table whole would measure something else.

mod keeper;
mod session;

use anyhow::Result;
use postgres::{Client, NoTls};

use super::store::{Database, Keeper, Session};
use super::{CommitMode, RedoStress};
use crate::failure::Failure;

/// A server.
pub struct Postgres<'a> {
    /// How to connect, in libpq's words.
    pub connect: &'a str,
}

impl Database for Postgres<'_> {
    fn session(&self, mode: CommitMode, stress: RedoStress) -> Result<Box<dyn Session>, Failure> {
        let client = Client::connect(self.connect, NoTls)?;
        Ok(Box::new(session::PostgresSession::new(client, mode, stress)?))
    }

    fn keeper(&self) -> Result<Box<dyn Keeper>> {
        Ok(Box::new(keeper::PostgresKeeper(crate::pg::connect(self.connect)?)))
    }
}
