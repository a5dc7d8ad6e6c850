//! Persistence primitives for byte-addressable media: the only home of storage `unsafe`.
//!
//! # Crash contract
//!
//! The rest of Seawall relies on these sentences and on nothing else about a medium:
//!
//! 1. Any 8-byte-aligned 8-byte unit of a [`Region`] is, after a crash, either wholly in the state of one of
//!    the stores made to it since it was last persisted, or in the persisted state. It is never torn.
//! 2. Which un-fenced units survive is arbitrary: any subset, in any order.
//! 3. A store made by [`Region::store`], [`Region::stream`] or [`Region::set_u64`] and followed by
//!    [`fence`] on the same thread is persisted: it survives everything the medium survives ([`Medium`]).
//! 4. A damaged unit may read as anything. Readers therefore check checksums before they believe a byte.
//!
//! Only stores through the verbs named in (3) are flushed. Atomics obtained by [`Region::u64`] are shared
//! memory: they are coherent between processes and promise nothing after a crash of the machine.
//!
//! Inputs: a mapped descriptor and offsets. Outputs: bytes on the medium. Not handled here: what the bytes
//! mean (`seawall-core`), who may touch them when (locks and lanes). Block devices have a contract of their own,
//! in [`block`].

#![cfg_attr(not(feature = "std"), no_std)]

mod aligned;
pub mod block;
mod checksum;
pub mod connection;
mod copy;
mod cpu;
#[cfg(feature = "std")]
pub mod durable;
mod flush;
#[cfg(target_arch = "x86_64")]
mod fold;
#[cfg(feature = "std")]
mod handle;
#[cfg(feature = "std")]
mod large_pages;
mod line;
#[cfg(feature = "std")]
pub mod locks;
pub mod magic;
#[cfg(feature = "std")]
pub mod mounts;
#[cfg(feature = "std")]
pub mod ordered;
#[cfg(feature = "std")]
pub mod output;
#[cfg(feature = "std")]
mod parallel;
mod past;
#[cfg(feature = "std")]
mod probe;
#[cfg(feature = "std")]
pub mod process;
#[cfg(feature = "std")]
mod random;
mod region;
#[cfg(feature = "std")]
mod residency;
pub mod signals;
pub mod sim;
mod stream;
#[cfg(feature = "std")]
mod time;

pub use aligned::HUGE_PAGE;
pub use checksum::{Striped, crc32c, mix};
pub use cpu::Flush;
pub use flush::{fence, flush_instruction};
#[cfg(feature = "std")]
pub use handle::{HANDLE_MAX, Identity, IdentityError, handle, identity};
#[cfg(feature = "std")]
pub use large_pages::in_large_pages;
pub use line::LINE;
#[cfg(feature = "std")]
pub use parallel::{in_parallel, processors};
pub use past::copy_past_cache;
#[cfg(feature = "std")]
pub use probe::{Medium, Probe, ProbeError, dax_mounts, probe};
#[cfg(feature = "std")]
pub use random::random_uuid;
pub use region::{MapError, Region};
#[cfg(feature = "std")]
pub use residency::resident;
pub use stream::Stream;
#[cfg(feature = "std")]
pub use time::utc;

/// Asserts the size of a struct on a medium and the offsets of its fields, and names them for the pages.
#[macro_export]
macro_rules! assert_layout {
    ($type:ty, $size:expr, { $($field:ident @ $offset:expr),* $(,)? }) => {
        const _: () = {
            assert!(size_of::<$type>() == $size);
            $(assert!(core::mem::offset_of!($type, $field) == $offset);)*
        };
        #[cfg(feature = "std")]
        impl $type {
            /// Field names and offsets, and the size: for the generated tables of `docs/`.
            pub const FIELDS: (&'static [(&'static str, usize)], usize) =
                (&[$((stringify!($field), $offset)),*], $size);
        }
    };
}
