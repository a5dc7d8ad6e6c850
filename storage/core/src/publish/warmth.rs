//! Which stretches of a file are worth a store.
//!
//! The first store into a page that was written back is a page fault; the kernel then makes everything that it holds in
//! one piece (a folio: one page or up to some MiB on ext4) writable, and dirty, and the stores that follow cost nothing
//! but the copy. So a *chunk* has to earn its stores: a quarter of it must have been written by calls since it was last
//! clean, or the chunk before it is warm and the writes follow one another. That also limits what is written back in
//! vain: at most four times what was written.
//!
//! In a warm chunk the first slow store into each *block* has the whole block made writable at once, instead of with a
//! fault for each page. Nothing announces the kernel's write-back. It shows when blocks that were made writable are
//! slow again, page by page. Then the chunk becomes cold, or due at once if enough was stored into it before. An
//! occasional slow store proves nothing: the thread was interrupted, or waited for memory.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Bytes of a chunk.
pub const CHUNK: u64 = 1 << 20;
/// Chunks of a window, the part of a file that is tracked: a database that writes all over a file should fit into it.
pub const CHUNKS: usize = 1024;
/// Chunks of a group: a window has one group for each bit of a word.
const GROUP: usize = CHUNKS / u64::BITS as usize;
/// After this many bytes written by calls, a chunk is due to be warm.
const EARNED: u32 = (CHUNK / 4) as u32;
/// Bit of a warm chunk.
const WARM: u32 = 1 << 31;
/// Bit of a warm chunk into which `EARNED` bytes were stored.
const WORTH_IT: u32 = 1 << 30;
/// Bytes of a block. A chunk has one block for each of its lowest bits, which show the blocks that were made writable.
pub const BLOCK: u64 = CHUNK / BLOCKS as u64;
const BLOCKS: u32 = 16;
/// One more slow store into such a block.
const AGAIN: u32 = 1 << BLOCKS;
/// This many slow stores are not due to write-back if as much as `EARNED` bytes are stored meanwhile.
const AGAIN_MAX: u32 = 8 * AGAIN;
const AGAIN_MASK: u32 = 15 * AGAIN;
/// Bytes stored, in units of 256 bytes.
const STORED: u32 = 1 << (BLOCKS + 4);
const STORED_MASK: u32 = WORTH_IT - STORED;
const STORED_UNIT: u64 = EARNED as u64 / (STORED_MASK / STORED + 1) as u64;

/// What to do after a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Nothing.
    Nothing,
    /// Make the block writable.
    OpenBlock,
    /// The chunk is cold from now on: its mapping may go.
    DropChunk,
}

/// The state of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// Calls are cheaper.
    Cold,
    /// Warm, if its pages are in memory.
    Due,
    /// Stores are cheaper.
    Warm,
}

/// Used by one thread at a time: atomics only because it lies in a static.
pub struct Warmth {
    /// 0 to `EARNED`: bytes written by calls. `WARM`, with blocks, slow stores and bytes stored.
    chunks: [AtomicU32; CHUNKS],
    /// Groups with chunks that are not 0: files that share a row clear it often.
    touched: AtomicU64,
    /// Where the latest write ended.
    end: AtomicU64,
}

impl Warmth {
    /// All cold.
    pub const fn new() -> Self {
        let [touched, end] = [const { AtomicU64::new(0) }; 2];
        Self { chunks: [const { AtomicU32::new(0) }; CHUNKS], touched, end }
    }

    /// All cold.
    pub fn clear(&self) {
        let mut touched = self.touched.load(Relaxed);
        while touched != 0 {
            let from = touched.trailing_zeros() as usize * GROUP;
            self.chunks[from..from + GROUP].iter().for_each(|chunk| chunk.store(0, Relaxed));
            touched &= touched - 1;
        }
        self.touched.store(0, Relaxed);
        self.end.store(0, Relaxed);
    }

    /// The state of the chunk in which these bytes of the window begin.
    #[inline]
    pub fn of(&self, bytes: &Range<u64>) -> Chunk {
        let (chunk, earned) = self.look(bytes);
        match earned {
            WARM.. => Chunk::Warm,
            EARNED => Chunk::Due,
            0 if chunk > 0 && self.follows(bytes) && self.chunks[chunk - 1].load(Relaxed) >= WARM => {
                Chunk::Due
            }
            _ => Chunk::Cold,
        }
    }

    /// A chunk that was due becomes warm, or has to earn it again.
    pub fn decide(&self, bytes: &Range<u64>, warm: bool) {
        // Not 0: a warm neighbour is no reason to ask again.
        self.set(self.look(bytes).0, if warm { WARM } else { 1 });
    }

    /// True if the latest write ended within these bytes: a log that writes its last page again, which is still in the
    /// processor's cache.
    #[inline]
    pub fn repeats(&self, bytes: &Range<u64>) -> bool {
        let end = self.end.load(Relaxed);
        bytes.start < end && end <= bytes.end
    }

    /// These bytes were written by a call.
    #[inline]
    pub fn called(&self, bytes: &Range<u64>) {
        let (chunk, earned) = self.look(bytes);
        if earned < EARNED {
            let more = (bytes.end - bytes.start).min(u64::from(EARNED)) as u32;
            self.set(chunk, (earned + more).min(EARNED));
        }
        self.end.store(bytes.end, Relaxed);
    }

    /// These bytes were stored into a warm chunk; `slow`: that took long.
    #[inline]
    pub fn stored(&self, bytes: &Range<u64>, slow: bool) -> After {
        self.end.store(bytes.end, Relaxed);
        let (chunk, state) = self.look(bytes);
        let stored =
            (state & STORED_MASK) + STORED * ((bytes.end - bytes.start) / STORED_UNIT).min(1023) as u32;
        let state = match stored >= WORTH_IT {
            true => state & !(STORED_MASK | AGAIN_MASK) | WORTH_IT,
            false => state & !STORED_MASK | stored,
        };
        self.set(chunk, state);
        if slow { self.slow(bytes) } else { After::Nothing }
    }

    #[cold]
    fn slow(&self, bytes: &Range<u64>) -> After {
        let (chunk, state) = self.look(bytes);
        let block = 1 << (bytes.start % CHUNK / BLOCK);
        let (state, after) = match state & block == 0 {
            true => (state | block, After::OpenBlock),
            false if state & AGAIN_MASK < AGAIN_MAX => (state + AGAIN, After::Nothing),
            false if state & WORTH_IT != 0 => (EARNED, After::DropChunk),
            false => (0, After::DropChunk),
        };
        self.set(chunk, state);
        after
    }

    #[inline]
    fn look(&self, bytes: &Range<u64>) -> (usize, u32) {
        let chunk = (bytes.start / CHUNK) as usize % CHUNKS;
        (chunk, self.chunks[chunk].load(Relaxed))
    }

    #[inline]
    fn set(&self, chunk: usize, state: u32) {
        self.chunks[chunk].store(state, Relaxed);
        self.touched.store(self.touched.load(Relaxed) | 1 << (chunk / GROUP), Relaxed);
    }

    /// True for a log's writes: each begins where the last one ended, or repeats its last page.
    fn follows(&self, bytes: &Range<u64>) -> bool {
        const NEAR: u64 = 64 << 10;
        self.end.load(Relaxed).abs_diff(bytes.start) <= NEAR
    }
}

impl Default for Warmth {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64, length: u64) -> Range<u64> {
        offset..offset + length
    }

    #[test]
    fn a_quarter_earns_it_and_write_back_ends_it() {
        let warmth = Warmth::new();
        for page in 0..64 {
            assert_eq!(warmth.of(&at(page * 4096, 4096)), Chunk::Cold);
            warmth.called(&at(page * 4096, 4096));
        }
        assert_eq!(warmth.of(&at(0, 512)), Chunk::Due);
        warmth.decide(&at(0, 512), true);
        for block in [0, BLOCK, CHUNK - 512] {
            assert_eq!(warmth.stored(&at(block, 512), true), After::OpenBlock);
            assert_eq!(warmth.stored(&at(block, 512), false), After::Nothing);
        }
        let slow = || warmth.stored(&at(0, 512), true);
        assert_eq!((0..9).map(|_| slow()).position(|after| after == After::DropChunk), Some(8));
        assert_eq!(warmth.of(&at(0, 512)), Chunk::Cold);
    }

    #[test]
    fn what_was_stored_into_enough_is_due_at_once() {
        let warmth = Warmth::new();
        let store = |page: u64, slow| warmth.stored(&at(page * 4096, 4096), slow);
        warmth.decide(&at(0, 1), true);
        assert_eq!(store(0, true), After::OpenBlock);
        // Occasional slow stores are no write-back.
        for page in 0..1024 {
            assert_eq!(store(page % 16, page % 16 == 0), After::Nothing);
        }
        assert_eq!((0..10).map(|_| store(0, true)).position(|after| after == After::DropChunk), Some(8));
        assert_eq!(warmth.of(&at(0, 1)), Chunk::Due);
    }

    #[test]
    fn places_all_over_a_gigabyte_are_told_apart_and_forgotten() {
        let warmth = Warmth::new();
        let places = [0, 1 << 20, 100 << 20, 512 << 20, (1 << 30) - CHUNK].map(|place| at(place, 4096));
        for place in &places {
            assert_eq!(warmth.of(place), Chunk::Cold);
            warmth.decide(place, true);
        }
        assert!(places.iter().all(|place| warmth.of(place) == Chunk::Warm));
        warmth.clear();
        assert!(places.iter().all(|place| warmth.of(place) == Chunk::Cold));
    }

    #[test]
    fn a_page_that_is_written_again_is_told_from_the_next_one() {
        let warmth = Warmth::new();
        assert!(!warmth.repeats(&at(0, 8192)));
        warmth.called(&at(8192, 4096));
        assert!(warmth.repeats(&at(8192, 4096)) && warmth.repeats(&at(8192, 8192)));
        assert!(!warmth.repeats(&at(12288, 4096)) && !warmth.repeats(&at(0, 8192)));
        warmth.stored(&at(12288, 4096), false);
        assert!(warmth.repeats(&at(12288, 4096)) && !warmth.repeats(&at(8192, 4096)));
    }

    #[test]
    fn what_follows_a_warm_chunk_is_due_once() {
        let warmth = Warmth::new();
        warmth.decide(&at(0, 1), true);
        warmth.stored(&at(CHUNK - 4096, 4096), false);
        let (next, far) = (at(CHUNK, 4096), at(CHUNK + CHUNK / 2, 4096));
        assert_eq!((warmth.of(&next), warmth.of(&far)), (Chunk::Due, Chunk::Cold));
        warmth.decide(&next, false);
        warmth.called(&next);
        assert_eq!(warmth.of(&at(CHUNK + 4096, 4096)), Chunk::Cold);
    }
}
