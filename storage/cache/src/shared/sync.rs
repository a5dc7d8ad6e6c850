//! Real syncs of a file, and which of its blocks a power cut may leave.
//!
//! A block may be filled from a page that is written, and not yet on the disk for good. After a power cut the disk
//! may hold what was there before, so such a block must not be served then. Each block therefore carries a *stamp*:
//! the number of the next sync of its file to begin. That sync, when it has ended well, has made durable whatever
//! the block was read from. After a machine stopped without warning only blocks are kept whose sync has ended.
//!
//! That is all there is to it: no map of what is dirty. What is written later kills the block, durably, before it
//! can reach the disk.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::SeqCst;

use super::word::FileWord;
use super::{Cache, CachedFile, FileRecord};

const BEGUN: usize = core::mem::offset_of!(FileRecord, begun);

impl Cache {
    /// A real sync of this file is about to begin. Its number, for [`end_sync`](Self::end_sync).
    pub fn begin_sync(&self, file: CachedFile) -> u32 {
        self.sync_word(file, BEGUN).map_or(0, |begun| begun.fetch_add(1, SeqCst).wrapping_add(1))
    }

    /// It has ended: well, or not. After one that failed nobody knows what the disk holds.
    pub fn end_sync(&self, file: CachedFile, number: u32, is_done: bool) {
        if !is_done {
            self.distrust(file);
            return;
        }
        let Some(done) = self.sync_word(file, FileRecord::DONE) else { return };
        let newer = |now: u32| (number.wrapping_sub(now) as i32 > 0).then_some(number);
        // It may be older than one that has ended: nothing to do then.
        let _ = done.fetch_update(SeqCst, SeqCst, newer);
        self.seal(file.slot);
        self.settle();
    }

    /// The stamp of a block that is filled now.
    pub(super) fn stamp(&self, file: CachedFile) -> u16 {
        self.sync_word(file, BEGUN).map_or(0, |begun| begun.load(SeqCst).wrapping_add(1) as u16)
    }

    fn sync_word(&self, file: CachedFile, at: usize) -> Option<&AtomicU32> {
        // A sync of a former tenant says nothing about this one.
        let is_tenant = self.file(file).has(FileWord::USED);
        self.file_at(file.slot).filter(|_| is_tenant).map(|entry| self.region.u32(entry + at))
    }
}

/// True if the sync with this stamp has ended, when `done` is the newest that has. One that is 32,768 syncs old is
/// taken for one to come: its block is lost, and nothing else.
#[cfg(feature = "std")]
pub(super) fn is_synced(stamp: u16, done: u32) -> bool {
    (done as u16).wrapping_sub(stamp).cast_signed() >= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_synced_when_its_sync_is_done_also_around_the_corner() {
        assert!(!is_synced(1, 0));
        assert!(is_synced(1, 1) && is_synced(1, 2));
        assert!(!is_synced(0, 0xffff) && is_synced(0, 0x1_0000));
    }
}
