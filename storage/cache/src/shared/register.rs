//! Which files the cache knows. The daemon's alone: two entries for one file would be two truths.
//!
//! ```text
//!            prepare: found by device and inode            serve: unchanged since it was noted: warm
//!            from now on, in a new version of its cell     serve: changed, or new: cold, a new incarnation
//!   noted ─────────────────────────────────────▶ prepared ─────────────────────────────────────▶ served
//!     ▲                                                                                             │
//!     └──────────────────────────────────────────── leave ──────────────────────────────────────────┤
//!   unused ◀─────────────────────────────────────── forget ─────────────────────────────────────────┘
//! ```
//!
//! Between the two steps nobody must be [writing it unannounced](super::unannounced). Whoever serves a file vouches for
//! this: until it leaves, everybody who writes or changes it does so through [`begin_write`](Cache::begin_write) and
//! [`change`](Cache::change), or it is [distrusted](Cache::distrust) before.

use core::sync::atomic::Ordering::SeqCst;

use super::format::{FileRecord, Identity};
use super::unannounced::Cell;
use super::word::FileWord;
use super::{Cache, CachedFile};
use crate::set::Policy;

/// A file that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// What it is called.
    pub file: CachedFile,
    /// What the cache has of it from before is served.
    pub is_warm: bool,
}

/// A file that was entered.
#[derive(Clone, Copy, Debug)]
pub struct Tenant {
    /// What it is called.
    pub file: CachedFile,
    /// Its entry.
    pub record: FileRecord,
    /// Somebody [distrusts](Cache::distrust) it.
    pub is_distrusted: bool,
    /// It is [suspended](Cache::suspend).
    pub is_suspended: bool,
}

/// A file that can be found by those who write it, and is not served yet.
#[derive(Clone, Copy, Debug)]
pub struct Preparing {
    file: CachedFile,
    cell: Cell,
    is_served: bool,
}

impl Preparing {
    /// What it is called.
    pub fn file(&self) -> CachedFile {
        self.file
    }

    /// Somebody entered it before: there is nothing to wait for.
    pub fn is_served(&self) -> bool {
        self.is_served
    }
}

impl Cache {
    /// A file is used from now on, which nobody writes unannounced. `None` if all entries are in use: it is not cached
    /// then.
    pub fn enter(&self, now: &Identity) -> Option<Entered> {
        let preparing = self.prepare(now, 0)?;
        Some(self.serve(&preparing, now))
    }

    /// The first step to serve a file, on device `dev` as fstat(2) has it: whoever writes it from now on finds it, and
    /// announces that. `None` if all entries are in use.
    ///
    /// An entry of this device and inode is this file's, also if it was another one's before: there may be writers who
    /// found it.
    pub fn prepare(&self, who: &Identity, dev: u64) -> Option<Preparing> {
        let cell = self.cell(dev, who.inode);
        let there = self.find(dev, who.inode).map(|file| (file, self.record(file.slot)));
        let file = match there {
            Some((file, record)) if record.is(who) => file,
            Some((file, _)) => {
                self.forget_noted(who, file.slot);
                self.take_over(file, who);
                file
            }
            None => self
                .noted(who)
                .inspect(|file| self.trust_again(*file, who))
                .or_else(|| self.place_for(who))?,
        };
        if let Some(at) = self.file_at(file.slot) {
            self.region.u64(at + FileRecord::DEV).store(dev, SeqCst);
        }
        let is_served = self.file(file).has(FileWord::SERVED);
        if !is_served {
            self.raise(cell);
        }
        Some(Preparing { file, cell, is_served })
    }

    /// True if nobody writes the file unannounced, and nobody will.
    pub fn is_quiet(&self, preparing: &Preparing) -> bool {
        preparing.is_served || self.is_cell_quiet(preparing.cell)
    }

    /// The second step, when it [is quiet](Self::is_quiet). `now` was asked of the file after that.
    pub fn serve(&self, preparing: &Preparing, now: &Identity) -> Entered {
        let (file, record) = (preparing.file, self.record(preparing.file.slot));
        if FileWord(record.word).has(FileWord::SERVED) {
            return Entered { file, is_warm: true };
        }
        let is_warm = record.is_unchanged(now);
        if !is_warm {
            let incarnation = self.new_incarnation();
            self.change_file(file, |word| word.reborn(incarnation));
        }
        self.count_anew(file);
        // Whoever distrusted it since it was prepared is still believed.
        self.change_file(file, |word| word.flagged(FileWord::SERVED, true));
        Entered { file, is_warm }
    }

    /// Whoever distrusted a file is gone when it has left; but what is there of it is not to be believed.
    fn trust_again(&self, file: CachedFile, who: &Identity) {
        let record = self.record(file.slot);
        let word = FileWord(record.word);
        if record.dev == 0 && word.has(FileWord::DISTRUSTED) && !word.has(FileWord::SERVED) {
            self.note(file, who, i64::MIN);
            self.change_file(file, |word| word.flagged(FileWord::DISTRUSTED, false));
        }
    }

    /// The entry of a file that was noted.
    fn noted(&self, who: &Identity) -> Option<CachedFile> {
        let is_it = |record: &FileRecord| FileWord(record.word).has(FileWord::USED) && record.is(who);
        let mut slots = (0..self.layout.files).map(|slot| (slot, self.record(slot)));
        let (slot, record) = slots.find(|(_, record)| is_it(record))?;
        Some(CachedFile { slot, tenant: FileWord(record.word).tenant() })
    }

    /// Forgets a file's entry other than this one.
    fn forget_noted(&self, who: &Identity, but: u32) {
        if let Some(file) = self.noted(who).filter(|file| file.slot != but) {
            self.forget(file);
        }
    }

    /// A new entry for a file: a free one, or that of one that nobody uses now, the one that was noted first.
    fn place_for(&self, who: &Identity) -> Option<CachedFile> {
        let slots = || (0..self.layout.files).map(move |slot| (slot, self.record(slot)));
        let is_used = |record: &FileRecord| FileWord(record.word).has(FileWord::USED);
        let free = slots().find(|(_, record)| !is_used(record));
        // One with a device was entered since the zone was opened: writers may have found it.
        let is_idle = |record: &FileRecord| !FileWord(record.word).has(FileWord::SERVED) && record.dev == 0;
        let oldest =
            || slots().filter(|(_, record)| is_idle(record)).min_by_key(|(_, record)| record.noted_ns);
        let (slot, record) = free.or_else(oldest)?;
        Some(self.place_in(slot, &record, who))
    }

    fn place_in(&self, slot: u32, record: &FileRecord, who: &Identity) -> CachedFile {
        let vacated = FileWord(record.word).vacated();
        if let (Some(word), Some(at)) = (self.file_word(slot), self.file_at(slot)) {
            // The former tenant is gone, durably, before its entry is written over.
            word.store(vacated.0, SeqCst);
            self.flush(at, 8);
            self.settle();
            // No sync of it has begun or ended.
            self.region.u64(at + 8).store(0, SeqCst);
            self.flush(at, FileRecord::BYTES);
        }
        let file = CachedFile { slot, tenant: vacated.tenant() };
        self.take_over(file, who);
        file
    }

    /// The entry is another file's from now on, of which nothing is there.
    fn take_over(&self, file: CachedFile, who: &Identity) {
        let incarnation = self.new_incarnation();
        // Distrusted it stays: by one who found it, for all we know.
        let anew = |word: FileWord| {
            word.reborn(incarnation).flagged(FileWord::USED, true).flagged(FileWord::SERVED, false)
        };
        // Not used before it says whose it is; one that is used stays so, for those who found it.
        self.change_file(file, |word| if word.has(FileWord::USED) { anew(word) } else { word });
        self.set_policy(file, Policy::Default);
        // As it is now; the times are noted when it leaves.
        self.note(file, who, i64::MIN);
        self.change_file(file, anew);
    }

    /// Says what the database uses a file for.
    pub fn set_class(&self, file: CachedFile, class: u32) {
        if let Some(at) = self.file_at(file.slot) {
            self.region.u32(at + FileRecord::CLASS).store(class, SeqCst);
        }
    }

    /// Nobody uses a file any more. `now` was asked of it at `now_ns`, nanoseconds since the epoch, while everybody
    /// who writes it still said so.
    pub fn leave(&self, file: CachedFile, now: &Identity, now_ns: i64) {
        if self.file(file).has(FileWord::SUSPENDED) {
            // What somebody wrote without a word is in its times now.
            self.resume(file, false);
        }
        self.change_file(file, |word| word.flagged(FileWord::SERVED, false));
        self.note(file, now, now_ns);
        // Nobody writes it: whoever comes back finds it when it is prepared again.
        if let Some(at) = self.file_at(file.slot) {
            self.region.u64(at + FileRecord::DEV).store(0, SeqCst);
        }
    }

    /// A file is gone.
    pub fn forget(&self, file: CachedFile) {
        self.change_file(file, FileWord::vacated);
    }

    /// The files that are served, or would be if nothing were in the way.
    pub fn tenants(&self) -> impl Iterator<Item = Tenant> {
        (0..self.layout.files).filter_map(|slot| {
            let record = self.record(slot);
            let word = FileWord(record.word);
            word.has(FileWord::SERVED).then(|| Tenant {
                file: CachedFile { slot, tenant: word.tenant() },
                record,
                is_distrusted: word.has(FileWord::DISTRUSTED),
                is_suspended: word.has(FileWord::SUSPENDED),
            })
        })
    }

    /// True if a file is what it was when it was noted last, and its times would show if it had been changed since.
    pub fn is_as_noted(&self, file: CachedFile, now: &Identity) -> bool {
        self.record(file.slot).is_unchanged(now)
    }

    /// Blocks that are there, whether their files are served or not.
    pub fn filled(&self) -> u64 {
        self.sets().map(|set| u64::from(set.load().valid().count_ones())).sum()
    }

    /// Notes what a file is now, while it is served: what a restart without [`leave`](Self::leave), after a power
    /// cut for example, compares with. Asked of it at `now_ns`, as there.
    pub fn note(&self, file: CachedFile, now: &Identity, now_ns: i64) {
        let Some(at) = self.file_at(file.slot) else { return };
        let record = FileRecord::noting(*now, now_ns);
        self.region.copy_in(at + FileRecord::IDENTITY, record.identity_bytes());
        self.flush(at, FileRecord::BYTES);
        self.settle();
    }
}
