//! Streams that can write: libc does it from inside, at times of its own. Their files' cells are pinned until the stream
//! is closed, as far as a fixed table has room; else for good, which is always safe.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

use seawall_cache::front::change;
use seawall_cache::shared::Cell;

use super::reach::zone_for;
use super::zone::{Known, known};
use crate::sys;

/// No stream.
const FREE: usize = 0;
/// A row that somebody works on.
const BUSY: usize = 1;

struct Row {
    stream: AtomicUsize,
    cell: AtomicU32,
}

const ROWS: usize = 64;
static TABLE: [Row; ROWS] = [const { Row { stream: AtomicUsize::new(FREE), cell: AtomicU32::new(0) } }; ROWS];

/// The stream at this address can write the file behind `fd` from now on.
pub fn opened(stream: usize, fd: c_int) {
    let Some(cache) = zone_for(fd) else { return };
    let Some(stat) = sys::fstat(fd).ok().filter(|stat| stat.regular) else { return };
    if !change::pin(cache, (stat.dev, stat.ino)) {
        return;
    }
    let take = |row: &&Row| row.stream.compare_exchange(FREE, BUSY, AcqRel, Relaxed).is_ok();
    if let Some(row) = TABLE.iter().find(take) {
        row.cell.store(u32::from(cache.cell(stat.dev, stat.ino).number()), Relaxed);
        row.stream.store(stream, core::sync::atomic::Ordering::Release);
    }
}

/// True if the stream's end must be seen.
pub fn is_open(stream: usize) -> bool {
    TABLE.iter().any(|row| row.stream.load(Acquire) == stream)
}

/// Runs `close`, which closes the stream at this address; whatever it still writes is written when that has returned.
pub fn closed<R>(stream: usize, close: impl FnOnce() -> R) -> R {
    // Before the close: the address may be another stream's at once.
    let take = |row: &&Row| row.stream.compare_exchange(stream, BUSY, AcqRel, Acquire).is_ok();
    let row = if stream > BUSY { TABLE.iter().find(take) } else { None };
    let result = close();
    if let Some(row) = row {
        if let Known::Yes(cache) = known() {
            cache.end_unannounced(Cell::from_number(row.cell.load(Relaxed) as u16));
        }
        row.stream.store(FREE, core::sync::atomic::Ordering::Release);
    }
    result
}

/// Before a fork: the child has the same streams, with what they have not written yet, so none of them is unpinned by
/// its parent's close.
pub fn before_fork() {
    for row in &TABLE {
        let stream = row.stream.load(Acquire);
        if stream > BUSY {
            // One that is being closed is not the child's problem any more.
            let _ = row.stream.compare_exchange(stream, FREE, AcqRel, Relaxed);
        }
    }
}
