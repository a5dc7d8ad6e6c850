//! The hit path: find the entry, copy it out with its checksum, and look again.
//!
//! Inputs: a file, a block's number, room for it. Outputs: the block, or a token for a fill. No lock, no system
//! call, and the only store is a heat's. When the block has been copied its place must still have the tag it had
//! before: so it was given to nobody else until then, and the bytes are that entry's.
//!
//! What is returned was right at a moment inside the call. The entry is the one that the set's word called valid when
//! the look began, or one that was published since: only what was published has a tag that says *filled*. At the
//! moment of the one or the other no write had touched the block since it was read from the disk. Whether it was killed
//! after that is not asked: whoever killed it writes at the same time as this reads.

use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::fence;

use super::view::{Set, entry_sum, key};
use super::word::{SetWord, Tag};
use super::{Cache, FileRef};
use crate::key::Block;

/// What became of a look.
#[derive(Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The block is in the buffer.
    Hit,
    /// It is not, and the buffer may hold anything. What is read from the disk now may be offered with the token;
    /// without one there is nothing to offer it to.
    Miss(Option<Token>),
}

/// Proof of when a block was missed: before the disk was read. It is good for a fill as long as nobody began to
/// write to the block's set, and as long as the file is the same.
#[derive(Debug, PartialEq, Eq)]
pub struct Token {
    pub(super) file: FileRef,
    pub(super) number: u32,
    pub(super) incarnation: u32,
    pub(super) version: u64,
}

impl Token {
    pub(super) fn block(&self) -> Block {
        Block { file: self.file.slot, number: self.number }
    }
}

/// What was seen of an entry.
struct Seen {
    way: usize,
    tag: Tag,
}

impl Cache {
    /// Copies a block into `into`, if it is there.
    ///
    /// # Panics
    /// If `into` is not one block long.
    #[inline]
    pub fn look_up(&self, file: FileRef, number: u32, into: &mut [u8]) -> Lookup {
        assert_eq!(into.len(), self.layout.block_bytes as usize, "a block's buffer");
        let now = self.file(file);
        if !now.is_open() || !self.is_serving() {
            return Lookup::Miss(None);
        }
        let block = Block { file: file.slot, number };
        let set = self.set_of(block);
        let key = key(now.incarnation(), number);
        let Some(seen) = find(set, set.load(), key) else { return self.miss(set, file, number) };
        let sum = self.region.read_summed(set.block_at(seen.way), into) ^ entry_sum(key, seen.tag.stamp());
        // The copy's loads before those of what says that it was right.
        fence(Acquire);
        if set.tag(seen.way).load(Relaxed) != seen.tag.0 {
            return self.miss(set, file, number);
        }
        if sum != seen.tag.checksum() {
            self.drop_damaged(set, &seen);
            return self.miss(set, file, number);
        }
        let heat = set.heat();
        let warmed = heat.warmed(seen.way);
        if warmed != heat {
            set.set_heat(warmed);
        }
        self.sample_read(block);
        Lookup::Hit
    }

    /// A miss, with a token if the block may be filled: its file is open and nobody is writing to its set. Taken
    /// anew, for what was seen before may be long ago.
    fn miss(&self, set: Set<'_>, file: FileRef, number: u32) -> Lookup {
        // The file's word before the set's: a change that begins in between makes another incarnation, and one
        // that is under way keeps the file closed.
        let now = self.file(file);
        let word = set.load();
        let may_fill = now.is_open() && word.writers() == 0;
        Lookup::Miss(may_fill.then(|| Token {
            file,
            number,
            incarnation: now.incarnation(),
            version: word.version(),
        }))
    }

    /// A block that nobody touched while it was copied, and whose checksum is wrong all the same. Who is copying it
    /// too sees that its tag is gone: one damage is counted once.
    #[cold]
    fn drop_damaged(&self, set: Set<'_>, seen: &Seen) {
        set.clear(1 << seen.way);
        set.scrub(1 << seen.way);
        self.count_failure();
    }
}

/// The valid entry with this key, if it is not being filled.
#[inline]
fn find(set: Set<'_>, word: SetWord, key: u64) -> Option<Seen> {
    let ways = set.which(word, |way| set.key(way).load(Relaxed) == key);
    if ways == 0 {
        return None;
    }
    let way = ways.trailing_zeros() as usize;
    let tag = set.load_tag(way);
    // The key once more, behind its tag: the place may have gone to another block in between.
    let is_ours = set.key(way).load(Relaxed) == key;
    (tag.is_filled() && is_ours).then_some(Seen { way, tag })
}
