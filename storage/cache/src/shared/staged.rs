//! Blocks on their way to the cache's disk: whoever offers one does not wait for the disk, but copies it into the zone;
//! the daemon brings it there, and publishes it as any fill.
//!
//! ```text
//! free ──claimed by whoever offers──▶ copied, with its checksum ──▶ ready ──the daemon──▶ written, published ──▶ free
//! ```
//!
//! There are few such places, and a process that finds none drops the block: it will be missed again. What decides whether it may
//! be published is its token, as if it had been offered the moment it was missed: a write since then makes it stale,
//! however long it was under way. Its checksum is taken when it is copied, and goes with it.
//!
//! A process that is killed while it copies leaves a place that is not ready, for the [reaper](super::reap); a daemon that is killed
//! leaves places that are, for the next one. Only one thread brings blocks to the disk, by calls that have written when
//! they return: so nothing of a killed daemon is on its way to a place that the next one fills.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use rustix::thread::futex;
use seawall_media::fence;

use super::fill::PIECE;
use super::operation::OperationOwner;
use super::view::{Set, key};
use super::word::Tag;
use super::{Cache, CachedFile, Offered, Token};
use crate::set::WAYS;

const OWNER: usize = 0;
const IS_READY: usize = 1;
const FILE: usize = 2;
const KEY: usize = 3;
const VERSION: usize = 4;
const WAY: usize = 5;
const TAG: usize = 6;
const SUM: usize = 7;

/// A block that is ready to be brought to the disk.
#[derive(Debug)]
pub struct Staged {
    number: u32,
    token: Token,
    /// The place that was chosen for it, and what its tag was then.
    place: (usize, Tag),
    sum: u32,
}

impl Cache {
    /// Copies a block for the daemon to bring to the disk.
    pub(super) fn stage(
        &self,
        owner: OperationOwner,
        token: &Token,
        bytes: &[u8],
        place: (usize, Tag),
    ) -> Offered {
        let is_free = |number: &u32| {
            let word = self.staged_word(*number, OWNER);
            word.load(Relaxed) == 0 && word.compare_exchange(0, owner.word(), SeqCst, Relaxed).is_ok()
        };
        let Some(number) = (0..self.layout.staged).find(is_free) else {
            self.count_dropped();
            return Offered::Busy;
        };
        let mut stream = self.region.stream(self.layout.staged_block_at(number));
        bytes.chunks(PIECE).for_each(|piece| stream.push(piece));
        let sum = stream.finish();
        // Streamed past the cache: without this the daemon could see the word before the block.
        fence();
        for (field, value) in [
            (FILE, u64::from(token.file.slot) << 16 | u64::from(token.file.tenant)),
            (KEY, key(token.incarnation, token.number)),
            (VERSION, token.version),
            (WAY, place.0 as u64),
            (TAG, place.1.0),
            (SUM, u64::from(sum)),
        ] {
            self.staged_word(number, field).store(value, Relaxed);
        }
        self.staged_word(number, IS_READY).store(1, Release);
        self.wake_daemon();
        Offered::Staged
    }

    /// Wakes the daemon's thread, if it sleeps.
    pub fn wake_daemon(&self) {
        if self.bell().swap(0, SeqCst) == 1 {
            let _ = futex::wake(self.bell(), futex::Flags::empty(), 1);
        }
    }

    /// Waits until something is ready, or for so many milliseconds. The daemon's alone.
    #[cfg(feature = "std")]
    pub fn wait_for_staged(&self, milliseconds: u32) {
        self.bell().store(1, SeqCst);
        if self.next_staged(0).is_none() {
            let time = futex::Timespec { tv_sec: 0, tv_nsec: i64::from(milliseconds.min(999)) * 1_000_000 };
            // Woken, interrupted, or the time is over: all the same.
            let _ = futex::wait(self.bell(), futex::Flags::empty(), 1, Some(&time));
        }
        self.bell().store(0, SeqCst);
    }

    /// The next block that is ready, in a place from `from` on, and which place is behind it. The daemon's alone.
    pub fn next_staged(&self, from: u32) -> Option<(Staged, u32)> {
        let is_ready = |number: &u32| self.staged_word(*number, IS_READY).load(Acquire) == 1;
        let number = (from..self.layout.staged).find(is_ready)?;
        let word = |field| self.staged_word(number, field).load(Relaxed);
        let (file, key) = (word(FILE), word(KEY));
        let token = Token {
            file: CachedFile { slot: (file >> 16) as u32, tenant: file as u16 },
            number: key as u32,
            incarnation: (key >> 32) as u32,
            version: word(VERSION),
        };
        let place = (word(WAY) as usize % WAYS, Tag(word(TAG)));
        Some((Staged { number, token, place, sum: word(SUM) as u32 }, number + 1))
    }

    /// Brings it to the disk, if it may still be: `write` writes a block there, and says whether it did. The daemon's alone,
    /// by one thread.
    ///
    /// # Panics
    /// If `memory` is not one block long.
    pub fn bring(
        &self,
        owner: OperationOwner,
        staged: &Staged,
        memory: &mut [u8],
        write: impl FnOnce(u64, &[u8]) -> bool,
    ) -> Offered {
        assert_eq!(memory.len(), self.layout.block_bytes as usize, "a block");
        let set = self.set_of(staged.token.block());
        let offered = match self.place_now(set, staged) {
            Err(why) => why,
            Ok(way) => {
                self.region.read(self.layout.staged_block_at(staged.number), memory);
                self.fill_place(owner, &staged.token, (set, way), |set, way| {
                    let is_written = write(set.stored_at(way), memory);
                    is_written.then_some(staged.sum)
                })
            }
        };
        match offered {
            Offered::Failed => self.count_disk_error(),
            Offered::Busy => self.count_dropped(),
            _ => {}
        }
        self.unstage(staged);
        offered
    }

    /// Drops it: as many bytes were brought to the disk as may be.
    pub fn drop_staged(&self, staged: &Staged) {
        self.count_over_budget();
        self.unstage(staged);
    }

    /// Its place now: the one that was chosen, or a free one if that went to another block meanwhile.
    fn place_now(&self, set: Set<'_>, staged: &Staged) -> Result<usize, Offered> {
        let Staged { token, place: (chosen, tag), .. } = staged;
        let word = set.load();
        if !self.is_serving() || word.version() != token.version {
            return Err(Offered::Stale);
        }
        let key = key(token.incarnation, token.number);
        if set.which(word, |way| set.key(way).load(Acquire) == key) != 0 {
            return Err(Offered::Passed);
        }
        let places = self.places();
        if set.load_tag(*chosen) == *tag && places >> chosen & 1 == 1 {
            return Ok(*chosen);
        }
        let free = places & !word.valid();
        let is_free = |way: &usize| free >> way & 1 == 1 && set.load_tag(*way).filler().is_none();
        (0..WAYS).find(is_free).ok_or(Offered::Busy)
    }

    fn unstage(&self, staged: &Staged) {
        self.staged_word(staged.number, IS_READY).store(0, Relaxed);
        self.staged_word(staged.number, OWNER).store(0, Release);
    }

    /// Nothing is on its way any more. Of whoever has the zone to itself.
    #[cfg(feature = "std")]
    pub(super) fn unstage_all(&self) {
        for number in 0..self.layout.staged {
            self.staged_word(number, IS_READY).store(0, Relaxed);
            self.staged_word(number, OWNER).store(0, Release);
        }
    }

    /// Frees the places of the dead that will never be ready. The reaper's.
    pub(super) fn reap_staged(&self, is_dead: impl Fn(OperationOwner) -> bool) {
        for number in 0..self.layout.staged {
            let word = self.staged_word(number, OWNER);
            let now = word.load(Acquire);
            let is_ready = self.staged_word(number, IS_READY).load(Acquire) == 1;
            if now != 0 && !is_ready && OperationOwner::from_word(now).is_some_and(&is_dead) {
                // Of a dead owner nobody but the reaper frees it.
                let _ = word.compare_exchange(now, 0, SeqCst, Relaxed);
            }
        }
    }

    fn staged_word(&self, number: u32, field: usize) -> &AtomicU64 {
        self.region.u64(self.layout.staged_at(number) + field * 8)
    }
}
