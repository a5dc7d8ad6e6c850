//! A fill: a block that was read from the disk enters, unless somebody began to write it since it was missed.
//!
//! ```text
//!  place idle ──claim: tag says empty, and who──▶ its old block is taken out of the set's word
//!     ▲                                                       │ key, block, checksum
//!     │                                                       ▼
//!     └── the version moved: given up ◀── publish: one compare-and-swap of the set's word
//!                                                             │ it had the token's version
//!                                                             ▼
//!                                          tag says filled: the block is served
//! ```
//!
//! A filler that is killed leaves a place that says *empty*, and by which operation: nothing in it is served, nobody
//! takes it, and the reaper finds it by that operation. Nothing here waits.

use core::sync::atomic;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use seawall_media::{Striped, fence};

use super::operation::{Doing, Operation, OperationOwner};
use super::view::{Set, entry_sum, key};
use super::word::{SetWord, Tag};
use super::{Cache, Token};
use crate::set::{Newcomer, WAYS, admit_in};

/// Stored at once: a simulated process can be killed in between.
pub(super) const PIECE: usize = 1024;

/// What became of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// The block is in the cache.
    Admitted,
    /// It was not wanted.
    Passed,
    /// Somebody wrote to it, or to its set, or changed the file: what was read may be old.
    Stale,
    /// The place was taken by another fill, or too many operations are under way.
    Busy,
    /// It is on its way to the disk.
    Staged,
    /// The disk refused it.
    Failed,
}

/// A place that is this fill's alone.
struct Claimed<'a> {
    set: Set<'a>,
    way: usize,
    tag: Tag,
}

impl Cache {
    /// Offers the whole block that was read from the disk after `token` was given. Nobody may have stored to `bytes`
    /// since: they are what others will read.
    ///
    /// # Panics
    /// If `bytes` is not one block long.
    pub fn offer(&self, owner: OperationOwner, token: &Token, bytes: &[u8]) -> Offered {
        self.sample_read(token.block());
        self.offer_as(owner, token, bytes, false)
    }

    /// The same of a block that nobody missed: it takes room, and drives nobody out unless its file is to be kept.
    ///
    /// # Panics
    /// If `bytes` is not one block long.
    pub fn offer_early(&self, owner: OperationOwner, token: &Token, bytes: &[u8]) -> Offered {
        self.offer_as(owner, token, bytes, true)
    }

    /// [`offer_early`](Self::offer_early) by whoever brings blocks to the disk themselves, on which `write` writes one, and
    /// says whether it did.
    ///
    /// # Panics
    /// If `bytes` is not one block long.
    pub fn bring_early(
        &self,
        owner: OperationOwner,
        token: &Token,
        bytes: &[u8],
        write: impl FnOnce(u64, &[u8]) -> bool,
    ) -> Offered {
        let (set, way) = match self.choose_for(token, bytes, true) {
            Ok(place) => place,
            Err(why) => return why,
        };
        let offered = self.fill_place(owner, token, (set, way), |set, way| {
            let mut sum = Striped::new();
            sum.update(bytes);
            write(set.stored_at(way), bytes).then(|| sum.finish())
        });
        if offered == Offered::Failed {
            self.count_disk_error();
        }
        offered
    }

    fn offer_as(&self, owner: OperationOwner, token: &Token, bytes: &[u8], is_early: bool) -> Offered {
        let (set, way) = match self.choose_for(token, bytes, is_early) {
            Ok(place) => place,
            Err(why) => return why,
        };
        if self.layout.is_on_disk() {
            return self.stage(owner, token, bytes, (way, set.load_tag(way)));
        }
        self.fill_place(owner, token, (set, way), |set, way| {
            let mut stream = self.region.stream(set.block_at(way));
            bytes.chunks(PIECE).for_each(|piece| stream.push(piece));
            Some(stream.finish())
        })
    }

    /// The place that an offered block is to have; else what becomes of it.
    fn choose_for(&self, token: &Token, bytes: &[u8], is_early: bool) -> Result<(Set<'_>, usize), Offered> {
        assert_eq!(bytes.len(), self.layout.block_bytes as usize, "a block");
        let set = self.set_of(token.block());
        if self.off().is_some() || set.load().version() != token.version {
            return Err(Offered::Stale);
        }
        if self.layout.is_on_disk() && self.is_spent() {
            self.count_over_budget();
            return Err(Offered::Passed);
        }
        let (fingerprint, policy) = (token.block().fingerprint(), self.policy(token.file.slot));
        let newcomer = Newcomer { fingerprint, policy, is_early };
        self.choose(set, token, newcomer).map(|way| (set, way)).ok_or(Offered::Passed)
    }

    /// Fills a place with what `put` puts there: it returns its checksum, or nothing if it could not.
    pub(super) fn fill_place<'a>(
        &'a self,
        owner: OperationOwner,
        token: &Token,
        (set, way): (Set<'a>, usize),
        put: impl FnOnce(Set<'a>, usize) -> Option<u32>,
    ) -> Offered {
        let Some(operation) = self.begin(owner, Doing::Fill { place: set.place(way) }) else {
            return Offered::Busy;
        };
        let offered = match self.claim(set, way, &operation) {
            Some(claimed) => self.fill(&claimed, token, put),
            None => Offered::Busy,
        };
        operation.end();
        offered
    }

    /// Takes a place from whoever has it, if nobody is filling it.
    fn claim<'a>(&self, set: Set<'a>, way: usize, operation: &Operation<'_>) -> Option<Claimed<'a>> {
        let before = set.load_tag(way);
        let tag = before.claimed(operation.number());
        if before.filler().is_some()
            || set.tag(way).compare_exchange(before.0, tag.0, SeqCst, Relaxed).is_err()
        {
            return None;
        }
        // The claim is seen before any store to the block, and before it is looked whether the place is still one: whoever takes
        // places away looks for claims when he has said so.
        atomic::fence(SeqCst);
        if self.places() >> way & 1 == 0 {
            // Its block is gone with the claim. If the place is one again before it was vacated, that block would be
            // neither there nor let in.
            set.clear(1 << way);
            set.tag(way).store(tag.given_up().0, SeqCst);
            return None;
        }
        if set.load().valid() >> way & 1 == 1 {
            set.remember(fingerprint_in(set, way));
        }
        set.clear(1 << way);
        // On a durable medium the old entry is gone before its block is written over, and the tag is there to say
        // so of the new one until that is whole. Else a power cut would leave checksums that fail.
        set.flush();
        set.flush_tag(way);
        self.settle();
        Some(Claimed { set, way, tag })
    }

    /// Stores the block, and publishes it if the token is still good.
    fn fill<'a>(
        &'a self,
        claimed: &Claimed<'a>,
        token: &Token,
        put: impl FnOnce(Set<'a>, usize) -> Option<u32>,
    ) -> Offered {
        let Claimed { set, way, tag } = *claimed;
        let key = key(token.incarnation, token.number);
        set.key(way).store(key, Relaxed);
        set.flush_key(way);
        let put = put(set, way);
        let stamp = self.stamp(token.file);
        // Streamed past the cache: without this other processes could see the word before the block.
        fence();
        let publish = |word: SetWord| (word.version() == token.version).then(|| word.with(way));
        let published = put.filter(|_| set.update(publish).is_some());
        let tag = match published {
            Some(sum) => tag.filled(sum ^ entry_sum(key, stamp), stamp),
            None => tag.given_up(),
        };
        set.tag(way).store(tag.0, Release);
        set.flush_tag(way);
        match (put, published) {
            (_, Some(_)) => {
                self.count_admitted();
                Offered::Admitted
            }
            (Some(_), None) => Offered::Stale,
            (None, _) => Offered::Failed,
        }
    }
}

impl Cache {
    /// The place that the block is to have; `None` if it may not enter, or is there.
    fn choose(&self, set: Set<'_>, token: &Token, newcomer: Newcomer) -> Option<usize> {
        let (word, key) = (set.load(), key(token.incarnation, token.number));
        if set.which(word, |way| set.key(way).load(Acquire) == key) != 0 {
            return None;
        }
        let filling = |way: &usize| set.load_tag(*way).filler().is_some();
        let busy = (0..WAYS).filter(filling).map(|way| 1 << way).sum();
        let mut memory = set.memory();
        let place = admit_in(self.places(), newcomer, set.heat(), &mut memory, !word.valid(), busy);
        set.set_memory(&memory);
        let place = place?;
        set.set_heat(place.heat);
        Some(place.way)
    }
}

/// The fingerprint of the block in a place.
fn fingerprint_in(set: Set<'_>, way: usize) -> u8 {
    crate::key::fingerprint(set.key(way).load(Relaxed) as u32)
}
