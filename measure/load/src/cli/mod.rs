//! The command line of the larger loads.

mod job;
pub mod output;
mod progress;
pub mod slob;
pub mod tprocc;
