//! The second-level block cache, between the page cache and the disk.
//!
//! [`shared`] is the index and the store that many processes use at once, [`front`] what each of them does with it. [`set`] is the choice of the blocks it
//! keeps, and [`model`] that choice without the blocks; [`advisory`] says what another size would give. How the choice
//! was made, beside the published algorithms, is `measure/cache-study`'s. `docs/internals/CACHE.md` shows all of it, and says
//! what is not built.
//!
//! What runs inside a database's process is `no_std` and allocates nothing; the rest needs feature `std`.

#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

pub mod access;
#[cfg(feature = "std")]
pub mod advisory;
pub mod front;
pub mod key;
#[cfg(feature = "std")]
pub mod model;
pub mod set;
pub mod shared;
