//! `files` and `check-files`: a program that writes new files, renames them over others, removes them, and syncs files and
//! directory each time: as most programs keep what they have.
//!
//! Every step of a client follows from its number, so the check knows what the directory held after each. After a crash it
//! must hold what it held when the last acknowledged step was over, or be somewhere in the next one.

mod check;
mod run;
mod steps;

pub use check::{CheckOptions, check};
pub use run::{Options, Report, run};
