//! `ledger-pg` and `check-pg`: acknowledged commits against an unmodified PostgreSQL.
//!
//! Each client commits one row `(client, seq)` after another with `synchronous_commit = on` and
//! notes it in the ledger once the server acknowledged it.

mod integrity;
mod load;
mod server;

pub(crate) use integrity::integrity;
pub use load::Postgres;
pub(crate) use server::{checkpoint, connect, counters, noted, version};

pub use crate::ledger_load::Report;
