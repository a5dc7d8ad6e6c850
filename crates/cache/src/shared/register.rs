//! Which files the cache knows. The daemon's alone: two entries for one file would be two truths.
//!
//! ```text
//!            enter: unchanged since it was noted: warm
//!            enter: changed, or new: cold, a new incarnation
//!   noted ───────────────────────────────────────────────▶ served
//!     ▲                                                       │
//!     └───────────────────────── leave ───────────────────────┤
//!   unused ◀──────────────────── forget ──────────────────────┘
//! ```
//!
//! Whoever enters a file vouches for this: until it leaves, everybody who writes or changes it does so through
//! [`begin_write`](Cache::begin_write) and [`change`](Cache::change), or it is [distrusted](Cache::distrust) before.

use core::sync::atomic::Ordering::SeqCst;

use super::format::{FileRecord, Identity};
use super::word::FileWord;
use super::{Cache, FileRef};

/// A file that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// What it is called.
    pub file: FileRef,
    /// What the cache has of it from before is served.
    pub is_warm: bool,
}

impl Cache {
    /// A file is used from now on. `None` if all entries are in use: it is not cached then.
    pub fn enter(&self, now: &Identity) -> Option<Entered> {
        let slots = || (0..self.layout.files).map(move |slot| (slot, self.record(slot)));
        let is_used = |record: &FileRecord| FileWord(record.word).has(FileWord::USED);
        if let Some((slot, record)) = slots().find(|(_, record)| is_used(record) && record.is(now)) {
            return Some(self.enter_again(slot, &record, now));
        }
        let free = slots().find(|(_, record)| !is_used(record));
        // One that nobody uses now makes room: the one that was noted first.
        let idle = |record: &FileRecord| !FileWord(record.word).has(FileWord::SERVED);
        let oldest = || slots().filter(|(_, record)| idle(record)).min_by_key(|(_, record)| record.noted_ns);
        let (slot, record) = free.or_else(oldest)?;
        Some(self.enter_new(slot, &record, now))
    }

    fn enter_again(&self, slot: u32, record: &FileRecord, now: &Identity) -> Entered {
        let word = FileWord(record.word);
        let file = FileRef { slot, tenant: word.tenant() };
        if word.has(FileWord::SERVED) {
            return Entered { file, is_warm: true };
        }
        let is_warm = record.is_unchanged(now) && !word.has(FileWord::DISTRUSTED);
        let incarnation = if is_warm { word.incarnation() } else { self.new_incarnation() };
        let serve =
            |word: FileWord| word.flagged(FileWord::DISTRUSTED, false).flagged(FileWord::SERVED, true);
        self.change_file(file, |word| serve(word.reborn(incarnation)));
        Entered { file, is_warm }
    }

    fn enter_new(&self, slot: u32, record: &FileRecord, now: &Identity) -> Entered {
        let vacated = FileWord(record.word).vacated();
        let incarnation = self.new_incarnation();
        if let (Some(word), Some(at)) = (self.file_word(slot), self.file_at(slot)) {
            // The former tenant is gone, durably, before its entry is written over.
            word.store(vacated.0, SeqCst);
            self.flush(at, 8);
            self.settle();
            // No sync of it has begun or ended.
            self.region.u64(at + 8).store(0, SeqCst);
            self.flush(at, FileRecord::BYTES);
        }
        let file = FileRef { slot, tenant: vacated.tenant() };
        // As it is now; the times are noted when it leaves.
        self.note(file, now, i64::MIN);
        let flags = FileWord::USED | FileWord::SERVED;
        self.change_file(file, |word| FileWord(word.reborn(incarnation).0 | flags));
        Entered { file, is_warm: false }
    }

    /// Nobody uses a file any more. `now` was asked of it at `now_ns`, nanoseconds since the epoch, while everybody
    /// who writes it still said so.
    pub fn leave(&self, file: FileRef, now: &Identity, now_ns: i64) {
        self.change_file(file, |word| word.flagged(FileWord::SERVED, false));
        self.note(file, now, now_ns);
    }

    /// A file is gone.
    pub fn forget(&self, file: FileRef) {
        self.change_file(file, FileWord::vacated);
    }

    /// Notes what a file is now, while it is served: what a restart without [`leave`](Self::leave), after a power
    /// cut for example, compares with. Asked of it at `now_ns`, as there.
    pub fn note(&self, file: FileRef, now: &Identity, now_ns: i64) {
        let Some(at) = self.file_at(file.slot) else { return };
        let record = FileRecord::noting(*now, now_ns);
        self.region.copy_in(at + FileRecord::IDENTITY, record.identity_bytes());
        self.flush(at, FileRecord::BYTES);
        self.settle();
    }
}
