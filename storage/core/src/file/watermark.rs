//! A file's watermark: all its records at or below it are on disk, and recovery does not replay them.

use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use rustix::io::Errno;
use rustix::thread::{Timespec, nanosleep};
use seawall_media::{Region, sim};

use super::Slot;
use crate::format;
use crate::store::Store;
use crate::thread::Thread;

/// The watermark of a file of which the disk may know nothing ([`Flag::UNBORN`](super::Flag)): recovery makes such a
/// file again if its directory's log says what it was. It is older than any record about the file.
pub const UNBORN: u64 = 0;
/// The lowest watermark of a file that is on the disk. No record has it: the first LSN is higher.
pub(crate) const BORN: u64 = 1;

const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

impl Slot<'_> {
    /// Raises the watermark: every record of the file at or below `lsn` is on disk. The caller holds the file's
    /// lock and has seen a real sync succeed that began after those records were published. When this returns success,
    /// recovery will not replay them.
    ///
    /// # Errors
    /// The medium failed: recovery may replay these records, so nothing may be acknowledged that relies on their being
    /// retired.
    pub(crate) fn raise_watermark(self, store: &Store, lsn: u64) -> Result<(), Errno> {
        let cell = format::watermark(self.number());
        let raise = |pool: &Region| {
            let _turn = Turn::take(self);
            cell.raise(pool, lsn);
        };
        match (store.change(&[cell.range()], raise), store.journal()) {
            (Err(Errno::BADF), Some(journal)) => {
                journal.retire(self.number(), self.file().generation, lsn)?
            }
            (done, _) => done?,
        }
        self.on_disk().fetch_max(lsn, Release);
        self.is_born();
        Ok(())
    }
}

/// The exclusive right to raise a file's watermark. The file's lock is not enough: a holder that lost it alive, because
/// it was stopped, may be in the middle of raising the cell, and would overwrite a later value with a lower one.
struct Turn<'a> {
    slot: Slot<'a>,
    me: u64,
}

impl<'a> Turn<'a> {
    /// Waits for the thread that raises it, unless that thread is dead.
    fn take(slot: Slot<'a>) -> Self {
        let me = Thread::this();
        let mut has_waited = false;
        loop {
            let holder = slot.raising().load(SeqCst);
            let other = Thread { word: holder, ..me };
            let is_free = holder == 0 || has_waited && other.is_dead();
            if is_free && slot.raising().compare_exchange(holder, me.word, SeqCst, Relaxed).is_ok() {
                return Self { slot, me: me.word };
            }
            has_waited = true;
            if !sim::waits() {
                // Woken early or not, it looks again.
                let _ = nanosleep(&NAP);
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // A thread that took this one for dead holds the turn by now.
        let _ = self.slot.raising().compare_exchange(self.me, 0, SeqCst, Relaxed);
    }
}
