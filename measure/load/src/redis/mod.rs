//! `ledger-redis` and `check-redis`: acknowledged transactions against an unmodified Redis.
//!
//! Each client adds its next number to a set and counts it, in one transaction, and notes it in the ledger once
//! the server has replied. With `appendfsync always` that is after the log's fsync. Invariant: each set is as
//! large as its count.

mod connection;
mod load;

pub use connection::{Connection, Reply};
pub use load::Redis;
