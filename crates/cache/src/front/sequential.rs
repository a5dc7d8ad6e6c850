//! Streams of adjacent reads: what is read through once, as a scan of a whole table is. Told by where the reads of a
//! descriptor begin and end, one word for each, as [`table`](super::table) has one.
//!
//! A descriptor that threads share shows their reads in turn: a scan among others is not recognized, and then the cache's
//! own choice has to do. A number that is used again begins anew with the first read that is elsewhere.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::table::ENTRIES;

/// Bytes of adjacent reads, one behind the other, from which on they are a stream.
pub const STREAM: u64 = 4 << 20;

/// ```text
///  63        32 31          0
/// |  next block |  run, blocks |
/// ```
static TABLE: [AtomicU64; ENTRIES] = [const { AtomicU64::new(0) }; ENTRIES];

/// Notes a read of so many blocks from `first` on; true if it belongs to a stream. By a plain store: threads that read
/// at once cost each other a beginning.
#[inline]
pub fn note(fd: c_int, first: u32, blocks: u32, block_bytes: u64) -> bool {
    let Some(cell) = usize::try_from(fd).ok().and_then(|fd| TABLE.get(fd)) else { return false };
    let before = cell.load(Relaxed);
    let is_next = (before >> 32) as u32 == first;
    let run = if is_next { (before as u32).saturating_add(blocks) } else { blocks };
    cell.store(u64::from(first.wrapping_add(blocks)) << 32 | u64::from(run), Relaxed);
    u64::from(run) * block_bytes > STREAM
}
