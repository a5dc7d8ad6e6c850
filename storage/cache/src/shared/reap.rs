//! What the dead left: places they were filling, marks of their writes and changes.
//!
//! The trouble with a mark is that nobody can tell whether a dead writer had come to set it, or had taken it back
//! already. So marks are never subtracted for the dead. A set that an operation of the dead may have marked is looked
//! at as a whole: if no living operation writes to it, all its marks are of the dead, and are wiped by one
//! compare-and-swap, which fails if anybody came or went meanwhile. (Whoever comes announces itself first, and whoever
//! goes takes its mark back first.)
//!
//! One reaper at a time. It may be killed anywhere: what it did not finish is found again.

use core::ops::Range;
use core::sync::atomic::Ordering::SeqCst;

use super::Cache;
use super::operation::{Doing, OperationOwner};
use super::view::Set;
use super::word::FileWord;
use crate::key::Block;

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Operations of the dead.
    pub operations: u32,
}

impl Cache {
    /// Tidies up after all owners that are dead. A process id that was used again counts as alive: what its former
    /// holder left is found when that one has ended too.
    pub fn reap(&self, is_dead: impl Fn(OperationOwner) -> bool) -> Reaped {
        let mut reaped = Reaped::default();
        for (number, entry) in self.entries() {
            if !entry.owner().is_some_and(&is_dead) {
                continue;
            }
            let is_tidy = match entry.doing() {
                Some(Doing::Fill { place }) => self.give_up(place, number),
                Some(Doing::Write { slot, blocks }) => self.wipe_sets(slot, &blocks, &is_dead),
                Some(Doing::Change { slot }) => self.wipe_file(slot, &is_dead),
                None => true,
            };
            // Else the living are in the way: the next time, then.
            if is_tidy {
                entry.release();
                reaped.operations += 1;
            }
        }
        self.reap_staged(&is_dead);
        reaped
    }

    /// Operations that are under way, or that the dead left.
    pub fn under_way(&self) -> usize {
        self.entries().filter(|(_, entry)| entry.owner().is_some()).count()
    }

    /// A place that a dead operation was filling, if it still is.
    fn give_up(&self, place: u64, filler: u32) -> bool {
        let Some((set, way)) = self.place(place) else { return true };
        let tag = set.load_tag(way);
        if tag.filler() == Some(filler) {
            // It may have been published: not any more, before the tag says that it can be believed.
            set.clear(1 << way);
            set.tag(way).store(tag.given_up().0, SeqCst);
        }
        true
    }

    /// Takes the marks of the dead off the sets of these blocks; false if some are left.
    fn wipe_sets(&self, slot: u32, blocks: &Range<u32>, is_dead: &impl Fn(OperationOwner) -> bool) -> bool {
        let left = self.sets_of(slot, blocks).filter(|(set, _)| !self.wipe_set(*set, is_dead));
        left.count() == 0
    }

    fn wipe_set(&self, set: Set<'_>, is_dead: &impl Fn(OperationOwner) -> bool) -> bool {
        let word = set.load();
        if word.writers() == 0 {
            return true;
        }
        let wiped = word.reset();
        !self.is_being_written(set, is_dead)
            && set.word().compare_exchange(word.0, wiped.0, SeqCst, SeqCst).is_ok()
    }

    fn is_being_written(&self, set: Set<'_>, is_dead: &impl Fn(OperationOwner) -> bool) -> bool {
        self.living(is_dead).any(|doing| match doing {
            Doing::Write { slot, blocks } => {
                blocks.into_iter().any(|number| self.set_of(Block { file: slot, number }).is_same(set))
            }
            _ => false,
        })
    }

    /// The same for a file.
    fn wipe_file(&self, slot: u32, is_dead: &impl Fn(OperationOwner) -> bool) -> bool {
        let Some(word) = self.file_word(slot) else { return true };
        let now = FileWord(word.load(SeqCst));
        if now.changers() == 0 {
            return true;
        }
        let is_changing = self.living(is_dead).any(|doing| doing == Doing::Change { slot });
        !is_changing && word.compare_exchange(now.0, now.reset().0, SeqCst, SeqCst).is_ok()
    }

    /// What is done by owners that are alive.
    fn living(&self, is_dead: &impl Fn(OperationOwner) -> bool) -> impl Iterator<Item = Doing> {
        let is_alive = move |owner: Option<OperationOwner>| owner.is_some_and(|owner| !is_dead(owner));
        self.entries()
            .filter(move |(_, entry)| is_alive(entry.owner()))
            .filter_map(|(_, entry)| entry.doing())
    }
}
