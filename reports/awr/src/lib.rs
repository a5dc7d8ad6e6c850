//! Snapshots of a database, its log and its machine; what happened between two of them; reports.
//!
//! `take` joins three sources into one [`model::Snapshot`]: Seawall's exact histograms (where it runs), the
//! database's own counters, the machine's. [`Repository`] keeps snapshots and one-second activity samples.
//! [`delta`] says what was counted between snapshots, never negative; [`period`] is everything a report says,
//! [`findings`] what limits the database, [`compare`] two periods side by side. [`top`] and [`metrics`] show now.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

mod block_cache;
pub mod clock;
pub mod compare;
pub mod database;
pub mod delta;
pub mod disks;
pub mod findings;
mod keepers;
mod machine;
pub mod metrics;
pub mod model;
mod names;
pub mod period;
pub mod placement;
mod recorder;
pub mod recovery;
pub mod report;
mod repository;
pub mod seawall;
mod take;
pub mod top;

pub use machine::{Idle, memory};
pub use recorder::{Recorder, Taken};
pub use repository::{Baseline, Imported, Pruned, Repository, RepositoryError, Samples, SnapshotSummary};
pub use take::{machine_only, take};
