//! Trials: a case, run.
//!
//! Input: a [`crate::case::Case`]. Output: lines of JSON ([`record`]), one a turn, from which [`crate::notebook`]
//! makes reports. Configurations take turns (A B C, B C A, …), the database is restarted for every turn, the log is
//! drained and the disk synced before it. What cannot be had on this machine is named, not left out.

mod confine;
mod crash;
mod decoy;
mod kill;
mod load;
mod memory;
mod mount;
mod observe;
mod pools;
mod prepare;
pub mod record;
mod resume;
mod run;
mod server;
pub mod slices;
mod snap;
mod stage;
mod standby;
pub mod throttle;
mod turn;

pub use decoy::{refuse_decoy, show_places};
pub use run::{at_position, run};
