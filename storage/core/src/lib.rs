//! The stages of a durable write, in the order of the words:
//!
//! intake ([`intake`]) → append ([`append`]) → persist ([`persist`]) → publish ([`publish`]; the caller's own system call,
//! handed to the [`Engine`]) → in the background [`destage`], and [`spill`] where memory is small → after a crash [`recover`].
//!
//! Stages meet only in [`engine`]. The first four run inside the database's process: that part is `no_std`,
//! allocates nothing, and holds no lock that the dead could keep. The rest needs feature `std`.

#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)] // All output is `seawall_media::output`'s.

pub mod append;
pub mod certain;
pub mod client;
pub mod directory;
mod engine;
pub mod file;
pub mod format;
pub mod guards;
pub mod intake;
pub mod journal;
pub mod name;
mod owner;
pub mod patience;
mod persist;
pub mod policy;
pub mod publish;
pub mod stand_in;
pub mod store;

#[cfg(feature = "std")]
pub mod destage;
#[cfg(feature = "std")]
pub mod inspect;
#[cfg(feature = "std")]
pub mod path_text;
#[cfg(feature = "std")]
pub mod pool;
#[cfg(feature = "std")]
pub mod reap;
#[cfg(feature = "std")]
pub mod recover;
#[cfg(feature = "std")]
pub mod spill;
#[cfg(feature = "std")]
pub mod table;
#[cfg(feature = "std")]
pub mod takeover;
pub mod thread;

#[cfg(feature = "std")]
pub use engine::Registered;
pub use engine::naming;
pub use engine::{
    Around, At, AttachError, Begun, Change, Engine, JoinError, NameDue, Out, Place, RealDue, Right, Scope,
    Syncing, Turn,
};
pub use file::FileRef;
pub use owner::Owner;
pub use rustix::io::Errno;
