//! The command line of the larger loads.

mod progress;
pub mod slob;
