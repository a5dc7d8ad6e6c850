//! What the fronts and the daemon share: the layout of the run-time memory, and the control messages.
//!
//! The run-time memory is volatile by design: everything in it can be rebuilt from the pool after a crash
//! of the machine. It outlives the daemon, so that a new daemon takes over a live log.
//!
//! Trust: only processes that the daemon authenticated hold the descriptors, but any of them may be killed
//! between any two stores. Readers therefore treat every index they load as untrusted.

#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

pub mod desk;
pub mod keeper;
pub mod message;
pub mod shm;
mod words;

/// Version of everything in this crate. A front and a daemon that differ do not talk.
pub const WIRE_VERSION: u32 = 32;

/// Keeps its items only in a build without `std`. Features unify over a workspace build, so a front that is
/// `no_std` by itself may find `std`, and with it a second panic handler, in its dependencies.
#[cfg(feature = "std")]
#[macro_export]
macro_rules! unless_std {
    ($($item:item)*) => {};
}

/// Keeps its items only in a build without `std`.
#[cfg(not(feature = "std"))]
#[macro_export]
macro_rules! unless_std {
    ($($item:item)*) => { $($item)* };
}
