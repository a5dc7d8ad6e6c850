//! The shared index and the store of blocks: one mapped zone, used by many processes at once, any of which may be
//! killed between any two instructions.
//!
//! ```text
//! header | samples | cells | operations | files | heads of sets | keys | tags | blocks
//! ```
//!
//! The blocks lie there, or [on a disk](store): then in their stead those that are on their way to it.
//!
//! | step | where | what it changes |
//! |---|---|---|
//! | look up | [`lookup`] | nothing but a heat; no lock, no system call |
//! | fill | [`fill`] | a place, published by one compare-and-swap of its set's word |
//! | bring a block to the disk | [`staged`] | a place, as a fill does; the daemon alone |
//! | write | [`mod@write`] | marks the sets of its blocks until it has ended |
//! | change (truncate, punch, rename over) | [`change`] | the file's incarnation |
//! | write a file that is not entered | [`unannounced`] | counts the writer in the file's cell until it has ended |
//! | count reads by file | [`count`] | the file's counts, once in 64 reads |
//! | sync | [`sync`] | what survives a power cut |
//! | reap | [`reap`] | what the dead left |
//! | keep, let compete, pass | [`policy`] | which places are kept; the daemon alone |
//! | enter, leave, forget | [`register`] | which files there are; the daemon alone |
//! | resize | [`resize`] | how many places a set has; the daemon alone |
//! | join | [`mod@join`] | nothing |
//! | create, recover, close | [`open`] | everything; alone |
//!
//! Invariants: an entry whose bit is set in its set's word, whose tag does not say *empty*, and whose key has its
//! file's incarnation, holds what a read of that block may return. Nobody waits for anybody. Not handled here: who
//! calls, how liveness is determined, and the zone's memory.

mod change;
mod count;
mod fill;
mod format;
mod join;
mod layout;
mod lookup;
mod mapped;
#[cfg(feature = "std")]
mod open;
mod operation;
mod policy;
mod reap;
#[cfg(feature = "std")]
mod register;
#[cfg(feature = "std")]
mod resize;
mod sample;
mod staged;
mod state;
#[cfg(feature = "std")]
mod store;
mod sync;
mod unannounced;
mod view;
mod word;
mod write;

pub use change::Changing;
pub use count::{ONE_READ_IN, is_counted};
pub use fill::Offered;
pub use format::{FORMAT_VERSION, FileRecord, Header, Identity};
pub use join::OpenError;
pub use layout::Layout;
pub use lookup::{Lookup, Token};
pub use mapped::{Cache, CachedFile, FromDisk, ReadAt};
#[cfg(feature = "std")]
pub use open::Recovered;
pub use operation::OperationOwner;
#[cfg(feature = "std")]
pub use policy::{Arrangement, Holding};
pub use reap::Reaped;
#[cfg(feature = "std")]
pub use register::{Entered, Preparing, Tenant};
pub use sample::{ONE_IN, is_sampled};
pub use staged::Staged;
pub use state::{FAILURES_MAX, Off};
#[cfg(feature = "std")]
pub use store::StoreHeader;
pub use unannounced::{Cell, Version};
pub use write::Writing;
