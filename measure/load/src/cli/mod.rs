//! The command line of the larger loads.

pub mod output;
mod progress;
pub mod slob;
pub mod tprocc;
