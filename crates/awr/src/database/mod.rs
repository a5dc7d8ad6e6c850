//! The database's own counters: one module a product, all behind [`Database`].
//!
//! Input: an address. Output: readings under the product's own names, and samples of what sessions
//! are doing. Everything is read with the privileges of a monitoring role; nothing is changed.

mod address;
mod mariadb;
mod postgres;
mod redis;

use anyhow::Result;

pub use address::Address;
pub use postgres::MARK;

use crate::model::{Sample, Snapshot, Target};

/// A connection to a database.
pub trait Database: Send {
    /// Which one it is.
    ///
    /// # Errors
    /// If it does not answer.
    fn target(&mut self) -> Result<Target>;

    /// Adds its readings.
    ///
    /// # Errors
    /// If it does not answer. What it refuses to show becomes a note, no error.
    fn capture(&mut self, snapshot: &mut Snapshot) -> Result<()>;

    /// What its sessions are doing now, if it can say.
    ///
    /// # Errors
    /// If it does not answer.
    fn sample(&mut self) -> Result<Vec<Sample>> {
        Ok(Vec::new())
    }

    /// Whether it can say at all: a look that cannot see anything is no look at an idle database.
    fn can_sample(&self) -> bool {
        true
    }
}

/// Connects.
///
/// # Errors
/// What failed, and how to go on.
pub fn connect(address: &Address) -> Result<Box<dyn Database>> {
    Ok(match address {
        Address::Postgres(config) => Box::new(postgres::Postgres::connect(config)?),
        Address::Mariadb(socket) => Box::new(mariadb::Mariadb::connect(socket)?),
        Address::Redis(place) => Box::new(redis::Redis::connect(place)?),
    })
}
