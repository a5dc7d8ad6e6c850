//! The block cache, as this process uses it: [`read_through`] looks there first, and whatever may change a file says so
//! ([`mod@change`]). `docs/internals/CACHE.md` says what it must do and why; what all fronts do is `seawall_cache::front`, the zone
//! itself `seawall_cache::shared`.
//!
//! | a file | is written |
//! |---|---|
//! | not entered, as far as the descriptor remembers ([`table`]) | counted in its cell meanwhile |
//! | entered | announced |
//! | written unseen (a mapping, io_uring, a stream) | its cell pinned, and the file distrusted |
//!
//! A process without a cache pays one load. Nothing here allocates, waits or keeps a lock; only reads ask the daemon,
//! once a descriptor.

mod change;
mod disk;
pub mod pin;
mod reach;
mod read_through;
mod streams;
pub mod table;
pub mod zone;

use core::ffi::c_int;

pub use change::{Span, append_or_unknown, change, change_named, change_opened, sync, unseen, write};
pub use read_through::{Wanted, read};
pub use streams::{before_fork, closed, is_open as is_stream, opened as stream};
pub use table::reset;
pub use zone::may_be;

/// True if nothing that is done through `fd` can matter to the zone.
#[inline]
pub fn is_other(fd: c_int) -> bool {
    reach::zone_for(fd).is_none_or(|cache| table::known(cache, fd).is_other())
}

/// True if no read through `fd` goes by the zone, as far as is known without asking.
#[inline]
pub fn is_read_past(fd: c_int) -> bool {
    crate::log::is_off() || !may_be() || table::get(fd).is_other()
}
