//! Typed views of the zone: a set, a place in it, a file.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use core::sync::atomic::{AtomicU32, AtomicU64};

use super::format::FileRecord;
use super::layout::HEAD_BYTES;
use super::word::{FileWord, SetWord, Tag};
use super::{Cache, CachedFile};
use crate::key::Block;
use crate::set::{Heat, Memory, WAYS};

/// A set.
#[derive(Clone, Copy)]
pub struct Set<'a> {
    cache: &'a Cache,
    number: u32,
}

/// What a block is called in the index: its file's incarnation, and its number.
#[inline]
pub fn key(incarnation: u32, number: u32) -> u64 {
    u64::from(incarnation) << 32 | u64::from(number)
}

/// What key and stamp add to their block's checksum, so that a block is not valid under another one.
#[inline]
pub fn entry_sum(key: u64, stamp: u16) -> u32 {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 ^ u32::from(stamp).wrapping_mul(0x9e37_79b1)
}

impl Cache {
    /// The set a block belongs to.
    #[inline]
    pub(super) fn set_of(&self, block: Block) -> Set<'_> {
        Set { cache: self, number: block.set(self.layout.sets) }
    }

    /// Every set.
    #[cfg(feature = "std")]
    pub(super) fn sets(&self) -> impl Iterator<Item = Set<'_>> {
        (0..self.layout.sets).map(|number| Set { cache: self, number })
    }

    /// The set with a place of this number, and the place in it.
    pub(super) fn place(&self, place: u64) -> Option<(Set<'_>, usize)> {
        let way = (place % WAYS as u64) as usize;
        let number = u32::try_from(place / WAYS as u64).ok().filter(|number| *number < self.layout.sets)?;
        Some((Set { cache: self, number }, way))
    }

    /// Where a file's entry lies; `None` if there is no such slot.
    #[inline]
    pub(super) fn file_at(&self, slot: u32) -> Option<usize> {
        (slot < self.layout.files).then(|| self.layout.files_at() + slot as usize * FileRecord::BYTES)
    }

    /// A file's word, whoever is the tenant.
    #[inline]
    pub(super) fn file_word(&self, slot: u32) -> Option<&AtomicU64> {
        self.file_at(slot).map(|at| self.region.u64(at))
    }

    /// A file's word now; one that is not open if `file` is not the tenant.
    #[inline]
    pub(super) fn file(&self, file: CachedFile) -> FileWord {
        let word = self.file_word(file.slot).map_or(FileWord(0), |word| FileWord(word.load(Acquire)));
        if word.tenant() == file.tenant { word } else { FileWord(0) }
    }

    /// Changes a file's word by compare-and-swap, unless `to` says no, and makes that durable.
    pub(super) fn change_file(&self, file: CachedFile, to: impl Fn(FileWord) -> FileWord) -> bool {
        let Some(word) = self.file_word(file.slot) else { return false };
        let is_tenant = |now: u64| FileWord(now).tenant() == file.tenant;
        let changed = word.fetch_update(SeqCst, SeqCst, |now| is_tenant(now).then(|| to(FileWord(now)).0));
        self.seal(file.slot);
        self.settle();
        changed.is_ok()
    }

    /// Seals a file's word and newest sync as they are, and starts the write-back of its entry.
    pub(super) fn seal(&self, slot: u32) {
        let Some(at) = self.file_at(slot) else { return };
        let word = self.region.u64(at).load(SeqCst);
        let done = self.region.u32(at + FileRecord::DONE).load(SeqCst);
        self.region.u32(at + FileRecord::SEAL).store(FileRecord::seal(word, done), SeqCst);
        self.flush(at, FileRecord::BYTES);
    }
}

impl<'a> Set<'a> {
    fn at(self) -> usize {
        self.cache.layout.heads_at() + self.number as usize * HEAD_BYTES
    }

    fn nth(self, way: usize) -> usize {
        self.number as usize * WAYS + way
    }

    /// The number of a place in the zone.
    pub fn place(self, way: usize) -> u64 {
        self.nth(way) as u64
    }

    /// Whether both are the same one of a zone.
    pub fn is_same(self, other: Set<'_>) -> bool {
        self.number == other.number
    }

    /// Whether it is the set of this block.
    #[cfg(feature = "std")]
    pub fn is_of(self, block: Block) -> bool {
        block.set(self.cache.layout.sets) == self.number
    }

    /// Its word.
    #[inline]
    pub fn word(self) -> &'a AtomicU64 {
        self.cache.region.u64(self.at())
    }

    /// Its word's value.
    #[inline]
    pub fn load(self) -> SetWord {
        SetWord(self.word().load(Acquire))
    }

    /// Changes its word by compare-and-swap, unless `to` says no. The value it had.
    #[inline]
    pub fn update(self, to: impl Fn(SetWord) -> Option<SetWord>) -> Option<SetWord> {
        let changed = self.word().fetch_update(SeqCst, Acquire, |now| to(SetWord(now)).map(|word| word.0));
        changed.ok().map(SetWord)
    }

    /// Takes blocks out of these places: always safe, for anybody.
    pub fn clear(self, ways: u16) {
        self.word().fetch_and(!u64::from(ways), SeqCst);
    }

    /// The tags of these places, before blocks are taken out of them.
    pub fn tags(self, ways: u16) -> [Tag; WAYS] {
        core::array::from_fn(|way| if ways >> way & 1 == 1 { self.load_tag(way) } else { Tag(0) })
    }

    /// Gives up the tags of these places, from which blocks were [taken](Self::clear): should a bit of the set's word flip,
    /// it brings none of them back. `seen` are the tags as they were before that: a place that got another block since is
    /// that block's. With its tag given up and its bit set that one would be neither there nor let in.
    pub fn scrub(self, mut ways: u16, seen: &[Tag; WAYS]) {
        while ways != 0 {
            let way = ways.trailing_zeros() as usize;
            ways &= ways - 1;
            let tag = seen[way];
            if tag.is_filled() {
                // Whoever was quicker has claimed it.
                let _ = self.tag(way).compare_exchange(tag.0, tag.given_up().0, SeqCst, Relaxed);
            }
            self.flush_tag(way);
        }
    }

    /// Starts the write-back of its word.
    #[inline]
    pub fn flush(self) {
        self.cache.flush(self.at(), 8);
    }

    #[inline]
    fn heat_word(self) -> &'a AtomicU32 {
        self.cache.region.u32(self.at() + 8)
    }

    /// Its heats.
    #[inline]
    pub fn heat(self) -> Heat {
        Heat(self.heat_word().load(Relaxed))
    }

    /// Stores its heats, over whatever others did meanwhile: a lost hit costs nothing but that.
    #[inline]
    pub fn set_heat(self, heat: Heat) {
        self.heat_word().store(heat.0, Relaxed);
    }

    /// What it remembers; torn, perhaps, by others: a wrong ghost costs a place at most.
    pub fn memory(self) -> Memory {
        let [low, high, turns, refused] = self.cache.region.u32(self.at() + 12).load(Relaxed).to_le_bytes();
        let mut ghosts = [0; WAYS];
        for (half, at) in ghosts.chunks_exact_mut(8).zip([16, 24]) {
            half.copy_from_slice(&self.cache.region.u64(self.at() + at).load(Relaxed).to_le_bytes());
        }
        let kept = u16::from_le_bytes([low, high]);
        Memory { ghosts, hand: turns % WAYS as u8, oldest: turns / WAYS as u8, refused, kept }
    }

    /// Stores what it remembers.
    pub fn set_memory(self, memory: &Memory) {
        let [low, high] = memory.kept.to_le_bytes();
        let turns = memory.hand % WAYS as u8 + memory.oldest % WAYS as u8 * WAYS as u8;
        let word = u32::from_le_bytes([low, high, turns, memory.refused]);
        self.cache.region.u32(self.at() + 12).store(word, Relaxed);
        for (half, at) in memory.ghosts.chunks_exact(8).zip([16, 24]) {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(half);
            self.cache.region.u64(self.at() + at).store(u64::from_le_bytes(bytes), Relaxed);
        }
    }

    /// Remembers a block that it does not hold any more.
    pub fn remember(self, fingerprint: u8) {
        let mut memory = self.memory();
        memory.remember(fingerprint);
        self.set_memory(&memory);
    }

    /// A place's key.
    #[inline]
    pub fn key(self, way: usize) -> &'a AtomicU64 {
        self.cache.region.u64(self.cache.layout.keys_at() + self.nth(way) * 8)
    }

    /// A place's tag.
    #[inline]
    pub fn tag(self, way: usize) -> &'a AtomicU64 {
        self.cache.region.u64(self.tag_at(way))
    }

    fn tag_at(self, way: usize) -> usize {
        self.cache.layout.tags_at() + self.nth(way) * 8
    }

    /// A place's tag's value.
    #[inline]
    pub fn load_tag(self, way: usize) -> Tag {
        Tag(self.tag(way).load(Acquire))
    }

    /// Where a place's block lies, in a zone that has blocks.
    #[inline]
    pub fn block_at(self, way: usize) -> usize {
        self.cache.layout.block_at(self.number, way)
    }

    /// Where it lies on the disk of one that has none.
    #[inline]
    pub fn stored_at(self, way: usize) -> u64 {
        self.cache.layout.stored_at(self.number, way)
    }

    /// Starts the write-back of a place's key.
    pub fn flush_key(self, way: usize) {
        self.cache.flush(self.cache.layout.keys_at() + self.nth(way) * 8, 8);
    }

    /// Starts the write-back of a place's tag.
    pub fn flush_tag(self, way: usize) {
        self.cache.flush(self.tag_at(way), 8);
    }

    /// The valid places for which this holds, as bits.
    #[inline]
    pub fn which(self, word: SetWord, holds: impl Fn(usize) -> bool) -> u16 {
        let (mut left, mut found) = (word.valid(), 0);
        while left != 0 {
            let way = left.trailing_zeros() as usize;
            left &= left - 1;
            found |= u16::from(holds(way)) << way;
        }
        found
    }
}
