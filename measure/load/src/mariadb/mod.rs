//! `ledger-mariadb` and `check-mariadb`: acknowledged commits against an unmodified MariaDB.
//!
//! Each client is one of MariaDB's own (`mariadb`), fed by a thread. A transaction inserts a row `(client, seq)`
//! and moves something between an account and the history; it counts when the row that is selected behind its
//! COMMIT has come back. The server may be killed at any moment: that ends the clients and is no error.

mod check;
mod client;
mod connection;
mod run;
mod server;

pub use check::{CheckOptions, check};
pub use client::{DATABASE, TABLES};
pub use connection::{Connection, Values};
pub use run::{Options, Report, run};
pub use server::told;
