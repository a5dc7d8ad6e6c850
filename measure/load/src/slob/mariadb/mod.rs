//! SLOB on MariaDB (InnoDB).
//!
//! InnoDB keeps a table in the order of its primary key, at least two rows in each page of 16 KiB. So the key is the
//! place in the random order, and beside each row lies one that nothing ever touches: one *living* row a page.
//! `custid` is a second index, through which rows are found.
//!
//! There is no asynchronous commit for a session: `innodb_flush_log_at_trx_commit` and `sync_binlog` are the whole
//! server's. So that mode is refused.

mod keeper;
mod session;

use anyhow::{Result, anyhow};

use super::store::{Database, Keeper, Session};
use super::{CommitMode, RedoStress};
use crate::failure::Failure;
use crate::mariadb::{Connection, told};
use crate::target::MariadbServer;

/// A server.
pub struct Mariadb<'a> {
    /// How it is reached.
    pub server: &'a MariadbServer,
}

impl Database for Mariadb<'_> {
    fn session(&self, mode: CommitMode, stress: RedoStress) -> Result<Box<dyn Session>, Failure> {
        if mode == CommitMode::Asynchronous {
            return Err(Failure::Other(anyhow!(
                "MariaDB has no asynchronous commit for a session; innodb_flush_log_at_trx_commit=2 or 0 and \
                 sync_binlog=0 make all commits of the server asynchronous: set them there, and run with \
                 --commit per-operation"
            )));
        }
        let connection = Connection::open(self.server)?;
        Ok(Box::new(session::MariadbSession::new(connection, stress)?))
    }

    fn keeper(&self) -> Result<Box<dyn Keeper>> {
        Ok(Box::new(keeper::MariadbKeeper(Connection::open(self.server).map_err(told)?)))
    }
}
