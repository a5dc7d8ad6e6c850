//! Persist: what was appended becomes durable; what is on disk is remembered.
//!
//! After [`records`] returns, every record this thread appended survives what the medium survives. After
//! [`watermark`] returns, recovery will not replay the file's records up to that LSN.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use rustix::thread::{Timespec, nanosleep};
use seawall_media::{Region, fence, sim};
use seawall_wire::shm::File;

use crate::store::Store;
use crate::thread::Thread;
use crate::{Errno, format};

const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Waits for the records this thread appended.
#[inline]
pub fn records() {
    fence();
}

/// Raises a file's watermark: every record of it at or below `lsn` is on disk. The caller holds the file's
/// lock and has seen a real sync succeed that began after those records were published.
///
/// # Errors
/// The medium failed: recovery may replay these records, so nothing that relies on their not being live may be
/// acknowledged.
pub fn watermark(pool: &Store, slot: u32, file: File<'_>, lsn: u64) -> Result<(), Errno> {
    let cell = format::watermark(slot);
    let raise = |pool: &Region| {
        let _turn = Turn::take(file);
        cell.raise(pool, lsn);
    };
    match (pool.change(&[cell.range()], raise), pool.journal()) {
        (Err(Errno::BADF), Some(journal)) => journal.retire(slot, file.generation().load(Acquire), lsn)?,
        (done, _) => done?,
    }
    file.watermark().fetch_max(lsn, Release);
    Ok(())
}

/// A turn at a file's watermark. The file's lock is not enough: whoever lost it alive, because it stood still, may be in the
/// middle of raising the cell, and would put a lower value over what was raised meanwhile.
struct Turn<'a> {
    file: File<'a>,
    me: u64,
}

impl<'a> Turn<'a> {
    /// Waits for whoever raises it, unless that is dead.
    fn take(file: File<'a>) -> Self {
        let me = Thread::this();
        let mut has_waited = false;
        loop {
            let holder = file.raising().load(SeqCst);
            let other = Thread { word: holder, ..me };
            let is_free = holder == 0 || has_waited && other.is_dead();
            if is_free && file.raising().compare_exchange(holder, me.word, SeqCst, Relaxed).is_ok() {
                return Self { file, me: me.word };
            }
            has_waited = true;
            if !sim::waits() {
                // Woken early or not: it looks again.
                let _ = nanosleep(&NAP);
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Whoever took it for dead has it by now.
        let _ = self.file.raising().compare_exchange(self.me, 0, SeqCst, Relaxed);
    }
}
