//! A block device as a medium: stores to a mapping in memory become durable as batches of a journal.
//!
//! ```text
//!   image in memory (a Region)         journal on the device, a ring
//!   ┌────────────────────────┐         ┌────────┬────────┬─────────┬─────────┬───────┬──────────┐
//!   │ line line line line …  │──Draft─▶│ anchor │ anchor │ batch 7 │ batch 8 │ torn  │ batch 3… │
//!   └────────────────────────┘         └────────┴────────┴─────────┴─────────┴───────┴──────────┘
//!              ▲                                                      │
//!              └────────────────────── read ──────────────────────────┘  after a crash of the machine
//! ```
//!
//! # Crash contract
//!
//! 1. A [`Device::write`] that returned success survives what the device survives, if it honours its flush.
//! 2. Of one that did not return, any subset of sectors may be new, old or garbled.
//! 3. [`read()`] gives back whole batches in the order of their numbers up to the newest one that was reported
//!    durable, and perhaps the one that was under way; or it says that one is missing.
//!
//! Not handled here: which lines belong into a batch, so that it holds nothing without what that depends on;
//! who may write (both `seawall-core`).

mod anchor;
mod batch;
#[cfg(feature = "std")]
mod chain;
#[cfg(feature = "std")]
mod claims;
#[cfg(feature = "std")]
mod closed;
mod device;
#[cfg(feature = "std")]
mod probe;
mod ring;

pub use anchor::{ANCHOR_BYTES, ANCHOR_MAGIC, Anchor, AnchorError, Mirror, MirrorState, RING_AT};
pub use batch::{BatchHeader, Draft, EXTENT_BYTES, Extent};
#[cfg(feature = "std")]
pub use chain::{JournalError, Recovered, read};
#[cfg(feature = "std")]
pub use closed::read_closed;
pub use device::Device;
#[cfg(feature = "std")]
pub use probe::{BlockProbe, WriteCache, probe_block, size_of};
pub use ring::Ring;
