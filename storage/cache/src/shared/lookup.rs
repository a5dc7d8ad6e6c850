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

use seawall_media::Striped;

use super::view::{Set, entry_sum, key};
use super::word::{SetWord, Tag};
use super::{Cache, CachedFile, FromDisk};
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
    pub(super) file: CachedFile,
    pub(super) number: u32,
    pub(super) incarnation: u32,
    pub(super) version: u64,
}

impl Token {
    pub(super) fn block(&self) -> Block {
        Block { file: self.file.slot, number: self.number }
    }
}

/// What a copy of an entry came to.
enum Copied {
    /// It is the entry's.
    Right,
    /// The place went to another block.
    Gone,
    /// Nobody touched it, and its checksum is wrong.
    Damaged,
    /// The disk refused.
    Unreadable,
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
    pub fn look_up(&self, file: CachedFile, number: u32, into: &mut [u8]) -> Lookup {
        assert_eq!(into.len(), self.layout.block_bytes as usize, "a block's buffer");
        let now = self.file(file);
        if !now.is_open() || !self.is_serving() {
            return Lookup::Miss(None);
        }
        let block = Block { file: file.slot, number };
        let set = self.set_of(block);
        let key = key(now.incarnation(), number);
        let Some(seen) = find(set, set.load(), key) else { return self.miss(set, file, number) };
        match self.copy(set, &seen, key, into) {
            Copied::Right => {}
            Copied::Gone => return self.miss(set, file, number),
            Copied::Damaged => {
                self.drop_from(set, &seen);
                self.count_failure();
                return self.miss(set, file, number);
            }
            Copied::Unreadable => {
                self.drop_from(set, &seen);
                self.count_disk_error();
                return self.miss(set, file, number);
            }
        }
        let heat = set.heat();
        let warmed = heat.warmed(seen.way);
        if warmed != heat {
            set.set_heat(warmed);
        }
        self.sample_read(block);
        Lookup::Hit
    }

    /// As [`look_up`](Self::look_up), and nothing is copied: whether the block is there now.
    pub fn look(&self, file: CachedFile, number: u32) -> Lookup {
        let now = self.file(file);
        if !now.is_open() || !self.is_serving() {
            return Lookup::Miss(None);
        }
        let set = self.set_of(Block { file: file.slot, number });
        match find(set, set.load(), key(now.incarnation(), number)) {
            Some(_) => Lookup::Hit,
            None => self.miss(set, file, number),
        }
    }

    /// Copies an entry.
    #[inline]
    fn copy(&self, set: Set<'_>, seen: &Seen, key: u64, into: &mut [u8]) -> Copied {
        if self.layout.is_on_disk() {
            return self.read_stored(set, seen, key, into);
        }
        let sum = self.region.read_summed(set.block_at(seen.way), into);
        judge(set, seen, key, sum)
    }

    /// Reads an entry from the disk. A checksum that is wrong is asked for a second time: while a process forks, what a
    /// kernel of before Linux 6.3 reads past the page cache may land in memory that is its child's by then.
    #[cold]
    fn read_stored(&self, set: Set<'_>, seen: &Seen, key: u64, into: &mut [u8]) -> Copied {
        let Some(read) = self.read else { return Copied::Gone };
        let mut copied = Copied::Unreadable;
        for _ in 0..2 {
            match read(set.stored_at(seen.way), into) {
                FromDisk::All => {}
                FromDisk::NotNow => return Copied::Gone,
                FromDisk::Failed => return Copied::Unreadable,
            }
            let mut sum = Striped::new();
            sum.update(into);
            copied = judge(set, seen, key, sum.finish());
            if !matches!(copied, Copied::Damaged) {
                break;
            }
        }
        copied
    }

    /// A miss, with a token if the block may be filled: its file is open and nobody is writing to its set. Taken
    /// anew, for what was seen before may be long ago.
    fn miss(&self, set: Set<'_>, file: CachedFile, number: u32) -> Lookup {
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

    /// Takes out a block that nobody touched while it was copied, and that cannot be had all the same. Whoever is copying it
    /// too sees that its tag is gone: one damage is counted once.
    #[cold]
    fn drop_from(&self, set: Set<'_>, seen: &Seen) {
        let tags = set.tags(1 << seen.way);
        set.clear(1 << seen.way);
        set.scrub(1 << seen.way, &tags);
    }
}

/// Whether what was copied, with this checksum, is the entry.
#[inline]
fn judge(set: Set<'_>, seen: &Seen, key: u64, sum: u32) -> Copied {
    // The copy's loads before those of what says that it was right.
    fence(Acquire);
    if set.tag(seen.way).load(Relaxed) != seen.tag.0 {
        return Copied::Gone;
    }
    let is_right = sum ^ entry_sum(key, seen.tag.stamp()) == seen.tag.checksum();
    if is_right { Copied::Right } else { Copied::Damaged }
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
