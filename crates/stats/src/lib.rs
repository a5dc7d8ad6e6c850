//! Wait events: one table of names, and their histograms in shared memory.
//!
//! Each lane has its own block of histograms, so recording is a plain add with no contention; readers sum
//! the lanes. Times are taken from the CPU's time-stamp counter at stage borders only, by the engine.

#![cfg_attr(not(feature = "std"), no_std)]

mod clock;
mod event;
mod histogram;

pub use clock::{Clock, ticks};
pub use event::{EVENTS, Event};
pub use histogram::{BLOCK_BYTES, Block, Summary, bucket_floor_ns};
