//! `ledger-mariadb` and `check-mariadb`: acknowledged commits against an unmodified MariaDB.
//!
//! A client's transaction inserts a row `(client, seq)` and moves something between an account and the history; it counts
//! when the server has answered its COMMIT. Invariant: the balances add up to the history.

mod connection;
mod load;
mod server;

pub use connection::{Connection, Values};
pub use load::{DATABASE, Mariadb, TABLES};
pub use server::told;

pub use crate::ledger_load::Report;
