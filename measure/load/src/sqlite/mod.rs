//! `sqlite` and `check-sqlite`: a commit-bound load on the distribution's own SQLite.
//!
//! One transaction updates a random account and inserts its history row, as a small bank would.
//! Invariant, checked afterwards: the balances add up to the history's deltas (a half-applied
//! transaction breaks it). With a ledger, each acknowledged commit is noted outside the database.

mod anew;
mod check;
mod options;
mod run;
mod schema;

pub use check::Sqlite;
pub(crate) use check::integrity;
pub use options::{JournalMode, Options, Report, Synchronous};
pub use run::run;
pub(crate) use schema::connect;
