//! What fronts with a process of their own share: the mount and the disk are clients of a pool's daemon, as a preloaded program
//! is one, with std.
//!
//! Input: a pool whose daemon runs. Output: the stages ([`seawall_core::Engine`]), and what only the daemon can do.
//!
//! Not handled here: which files are whose, and how requests come. Starting and replacing the daemon is the command line's.

#![deny(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

#[macro_use(errln)]
extern crate seawall_media;

mod blocks;
mod client;
mod joined;
mod lent;
mod stored;

pub use blocks::{Blocks, fill};
pub use client::{Daemon, Socket};
pub use joined::Joined;
