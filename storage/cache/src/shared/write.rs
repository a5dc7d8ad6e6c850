//! A write: its blocks die before it is visible, and nobody fills them until it has ended.
//!
//! Killing before is not enough: a reader who asks for the disk after that and gets there before the write would
//! bring the old block back. So the sets of a write's blocks are *marked* while it is under way; a token is given
//! and a fill is published only where there is no mark. A writer that is killed leaves its marks: its sets take no
//! blocks until the reaper has looked at its operation.

use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

use super::operation::{Doing, Operation, OperationOwner};
use super::view::Set;
use super::{Cache, CachedFile};
use crate::key::{Block, fingerprint};

/// A write that is under way. It must be [ended](Cache::end_write).
#[must_use = "its sets take no blocks until it has ended"]
pub struct Writing<'a> {
    file: CachedFile,
    blocks: Range<u32>,
    /// `None`: there was no room to note it, and the file is not served any more.
    operation: Option<Operation<'a>>,
}

impl Cache {
    /// Announces a write to these blocks, wholly or in part. From its return until [`end_write`](Self::end_write)
    /// none of them is served or filled; on a durable medium that holds after a power cut too.
    ///
    /// Must be called whether the cache is on or off.
    pub fn begin_write(&self, owner: OperationOwner, file: CachedFile, blocks: Range<u32>) -> Writing<'_> {
        let doing = Doing::Write { slot: file.slot, blocks: blocks.clone() };
        let operation = self.begin(owner, doing);
        if operation.is_some() {
            self.sets_of(file.slot, &blocks).for_each(|(set, number)| kill(set, number));
            blocks.clone().for_each(|number| self.sample_write(Block { file: file.slot, number }));
            self.settle();
        } else {
            self.distrust(file);
        }
        Writing { file, blocks, operation }
    }

    /// The write is visible, or failed.
    pub fn end_write(&self, writing: Writing<'_>) {
        let Writing { file, blocks, operation } = writing;
        let Some(operation) = operation else { return };
        self.sets_of(file.slot, &blocks).for_each(|(set, _)| unmark(set));
        operation.end();
    }

    /// The set of each of these blocks, and the block's number.
    pub(super) fn sets_of(&self, file: u32, blocks: &Range<u32>) -> impl Iterator<Item = (Set<'_>, u32)> {
        blocks.clone().map(move |number| (self.set_of(Block { file, number }), number))
    }
}

/// Marks the set, then takes the block out. In this order: with the mark no fill is published any more, so what is
/// not found now does not come. Taken out is every block of this number, whatever its file and incarnation: an
/// innocent one is read again, and this way the file's word, which may change meanwhile, plays no part.
fn kill(set: Set<'_>, number: u32) {
    set.update(|word| Some(word.marked()));
    let ways = set.which(set.load(), |way| set.key(way).load(Relaxed) as u32 == number);
    if ways != 0 {
        set.remember(fingerprint(number));
        let seen = set.tags(ways);
        set.clear(ways);
        set.scrub(ways, &seen);
    }
    set.flush();
}

fn unmark(set: Set<'_>) {
    set.update(|word| Some(word.unmarked()));
}
