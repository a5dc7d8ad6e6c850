//! The database's own counters: one module a product, all behind [`Database`].
//!
//! Input: an address. Output: readings under the product's own names, and samples of what sessions
//! are doing. Everything is read with the privileges of a monitoring role; nothing is changed.

mod address;
mod connection;
mod mariadb;
mod postgres;
mod redis;

use anyhow::Result;

pub use address::Address;
pub use connection::Database;
pub use postgres::MARK;

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
