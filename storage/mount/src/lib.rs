//! The mount: a directory with Seawall's promises, for any program in any language.
//!
//! Input: a backing directory, a mountpoint, a pool whose daemon runs. Output: the backing directory's files at
//! the mountpoint, where what a program writes goes through the same stages as with the preload.
//!
//! ```text
//!  any program ── write ──▶ kernel (FUSE) ──▶ adapter ──▶ fs ──▶ seawall-core's Engine
//!                                                │           intake, append, persist
//!                                                │           publish: pwrite to the backing file
//!                                                └─▶ unmanaged files: the kernel goes past us to the backing file
//!  the daemon: destage, recover, guards, foreign writers, as for every client
//! ```
//!
//! # A client, not a part of the daemon
//!
//! The mount process is a client like a preloaded one: it says Hello, has a slot, takes lanes and file locks, and
//! registers files. So there is one implementation of everything: the daemon finishes or voids what a mount that
//! was killed left half done, as for any other process, and the mount goes on while a daemon is replaced. One
//! daemon serves any number of mounts and preloaded databases from one pool. A fault here cannot take the log's
//! owner with it.
//!
//! # What makes it right
//!
//! * Nothing is acknowledged that neither the log nor the disk holds: an fsync of a file that is not in the log is
//!   a real fsync of the backing file.
//! * The kernel writes through (no write-back cache): a write(2) has been published, and logged, when it returns.
//!   Only stores into shared mappings are kept back, and an fsync or msync brings them to us first.
//! * The mount sees every write of every program. So a mapping, a stream or io_uring does not take a file out of the
//!   log, as it must with the preload.
//! * Locks (POSIX, OFD, flock) are the kernel's, on the mount's inodes: all programs that use the mount see them.
//!
//! Not handled here: what a record is (`seawall-core`), guards and foreign writers (`seawall-daemon`), starting and
//! replacing the daemon (the command line).

#![deny(unsafe_code)] // Allowed in two places: `passing` and `uring::sys`.
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

#[macro_use(errln)]
extern crate seawall_media;

mod adapter;
mod attr;
mod cached;
mod caller;
mod class;
mod flags;
mod fs;
mod guards;
mod handle;
mod held;
mod log;
pub mod mountpoint;
mod named;
mod names;
mod node;
mod noted;
mod pages;
mod passing;
mod rights;
mod seen;
mod serve;
mod settle;
mod uring;
mod ways;

pub use flags::Flag;
pub use log::Discover;
pub use serve::{Mount, Options};
pub use uring::FuseUring;
pub use ways::Ways;
