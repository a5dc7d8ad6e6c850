//! The second-level block cache, between the page cache and the disk.
//!
//! So far: how it chooses the blocks it keeps. [`set`] is the choice itself, as processes that share the cache
//! make it in memory they share; [`algorithm`] has it beside the published ones, [`trace`] the traces they are
//! compared on, [`simulate`] the comparison. `docs/CACHE.md` shows the outcome, and says what is not built.
//!
//! What runs inside a database's process is `no_std` and allocates nothing; the rest needs feature `std`.

#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

#[cfg(feature = "std")]
pub mod algorithm;
pub mod key;
pub mod set;
#[cfg(feature = "std")]
pub mod simulate;
#[cfg(feature = "std")]
pub mod trace;
