//! The SLOB method: one row a block, in random order, touched a work unit at a time through an index.
//!
//! Built from the published description of SLOB (Kevin Closson's "Silly Little Oracle Benchmark"), none of whose
//! code is used; it takes SLOB's parameters by their own names ([`Conf`]) and runs on PostgreSQL, MariaDB and SQLite.
//!
//! - [`setup()`] loads the tables and begins a [ledger]: which updates were acknowledged.
//! - [`run()`] puts load on them. SLOB commits inside PL/SQL, which waits for redo once a call, not once a commit;
//!   so there are three [`CommitMode`]s, and every result names its own.
//! - [`check()`] reads every row: each column says which operation wrote it ([`stamp`]), each row counts its updates.
//!   A row that was set back, an update that was half made, a lost one: each is found.
//!
//! A row has, beside SLOB's `custid` and c2 to c20, a column `updates`: the count that makes lost updates visible.

pub mod conf;
pub mod ledger;
pub mod outcome;
pub mod pick;
pub mod stamp;

mod check;
mod commit;
mod layout;
mod mariadb;
mod postgres;
mod run;
mod setup;
mod sqlite;
mod store;
mod targets;
mod text;

pub use check::{CheckReport, check};
pub use commit::CommitMode;
pub use conf::{Conf, RedoStress, Size};
pub use layout::Layout;
pub use outcome::Outcome;
pub use run::{RunOptions, run};
pub use setup::{SetupReport, setup};
