//! The disk: an image file as a virtual machine's disk (vhost-user-blk), with Seawall's promises for any guest.
//!
//! Input: an image, a socket to which QEMU connects, a pool whose daemon runs. Output: the guest's disk. What it writes goes
//! through the same stages as with the other fronts; its flush waits for the log alone; the image follows in the background.
//!
//! ```text
//!  guest ── virtio-blk ring in its memory ──▶ ring ─▶ request ─▶ image ─▶ seawall-core's Engine
//!                                               │                          intake, append, persist
//!                                               │                          publish: pwrite to the image
//!  QEMU ── vhost-user socket ──▶ session        └─▶ inflight: which requests are under way, in memory that QEMU keeps
//!  the daemon: destage, recover, guards, as for every client
//! ```
//!
//! # What makes it right
//!
//! * Each request of the guest is one record: it is whole after a power cut of the host, whatever its length up to 1 MiB.
//! * What the guest is about to change again is copied before it is logged: it may write to its memory at any moment, and the
//!   record's checksum is made of what is published.
//! * This process may be killed at any moment. QEMU keeps the list of requests that have no answer ([`inflight`]) and gives it to
//!   the next process, which carries them out again; a guest never has two of them at once that depend on each other.
//! * Nothing that the guest says is believed: every address, length, index and count is checked against its memory and the disk.
//!
//! Not handled here: what a record is (`seawall-core`), guards (`seawall-daemon`), starting and replacing the daemon (the
//! command line).

#![deny(unsafe_code)] // Allowed in one place: `sys`.
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

#[macro_use(errln)]
extern crate seawall_media;

mod back;
mod cached;
mod chain;
mod config;
pub mod control;
mod count;
mod dirty;
mod disk;
mod failure;
mod image;
mod inflight;
mod lock;
mod log;
mod memory;
mod pace;
mod request;
mod ring;
mod server;
mod session;
mod step;
mod sys;
mod vring;

pub use count::Counted;
pub use disk::{Disk, Options};
pub use failure::Refused;
pub use image::grow;
pub use log::Log;
pub use memory::Memory;
pub use pace::Limits;
pub use seawall_front::Joined;
pub use server::Server;
