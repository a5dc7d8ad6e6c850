//! The repository: one SQLite file with snapshots, samples and baselines.
//!
//! Invariants: the file has a version, and another version is refused, never guessed at; every change is one
//! transaction, so what was finished before a crash is there afterwards. Words that stay the same from one
//! snapshot to the next (settings, texts of statements) are stored once.

mod baseline;
mod error;
mod exchange;
mod file;
mod samples;
mod schema;
mod snapshots;

pub use baseline::Baseline;
pub use error::RepositoryError;
pub use exchange::Imported;
pub use file::Repository;
pub use samples::Samples;
pub use snapshots::{Pruned, SnapshotSummary};
