//! `ledger-etcd` and `check-etcd`: acknowledged puts against an unmodified etcd.
//!
//! Each client puts its next number under a key of its own and notes it in the ledger once the server has replied:
//! that is after the fsync of etcd's write-ahead log. Invariants: each client's keys are numbered without a gap, and
//! each value says which key it belongs to.

mod connection;
mod load;

pub use connection::Connection;
pub use load::{Etcd, Puts};

pub use crate::ledger_load::Report;
