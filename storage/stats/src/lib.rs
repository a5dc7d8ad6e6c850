//! Wait events: one table of names, and their histograms in shared memory.
//!
//! Each lane has its own block of histograms, one per event and class of file, so recording is a plain add with no
//! contention; readers sum the lanes. Times are taken from the CPU's time-stamp counter at stage borders only, by the engine.

#![cfg_attr(not(feature = "std"), no_std)]
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

mod class;
mod clock;
mod event;
mod histogram;
mod tally;

pub use class::Class;
pub use clock::{Clock, ticks};
pub use event::{EVENTS, Event, Row};
pub use histogram::{BLOCK_BYTES, Block, Summary, bucket_floor_ns};
pub use tally::Tally;
