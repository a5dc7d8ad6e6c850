//! Belady's optimum: what an algorithm that knows the future could do. No algorithm has more hits.
//!
//! The block that is wanted latest goes, and one that would be wanted later still is not admitted at all. A write
//! takes a block out, or brings it in, as it does in a page cache.

use std::collections::{BTreeSet, HashMap};

use super::Outcome;
use seawall_cache::access::Access;
use seawall_cache::key::Block;

use crate::trace::Trace;

/// The optimum on one trace: [`step`](Self::step) takes its accesses in order.
pub struct Belady {
    next_read: Vec<usize>,
    at: usize,
    wanted: BTreeSet<(usize, Block)>,
    kept: HashMap<Block, usize>,
    capacity: usize,
    writes_stay: bool,
}

const NEVER: usize = usize::MAX;

impl Belady {
    /// Room for `capacity` blocks. With `writes_stay` a block that is written may be kept.
    pub fn new(trace: &Trace, capacity: usize, writes_stay: bool) -> Self {
        let mut next = HashMap::new();
        let mut next_read = vec![NEVER; trace.accesses.len()];
        for (at, access) in trace.accesses.iter().enumerate().rev() {
            let after = match access {
                Access::Read(block) => next.insert(*block, at),
                Access::Write(block) => next.remove(block),
            };
            next_read[at] = after.unwrap_or(NEVER);
        }
        Self { next_read, at: 0, wanted: BTreeSet::new(), kept: HashMap::new(), capacity, writes_stay }
    }

    /// Takes the next access, which must be the trace's; returns what became of it, if it is a read.
    pub fn step(&mut self, access: Access) -> Option<Outcome> {
        let next = self.next_read[self.at];
        self.at += 1;
        match access {
            Access::Write(block) => {
                self.remove(block);
                if self.writes_stay {
                    self.keep(block, next);
                }
                None
            }
            Access::Read(block) => {
                let was_there = self.remove(block);
                let is_kept = self.keep(block, next);
                Some(match (was_there, is_kept) {
                    (true, _) => Outcome::Hit,
                    (false, true) => Outcome::Admitted,
                    (false, false) => Outcome::Passed,
                })
            }
        }
    }

    fn remove(&mut self, block: Block) -> bool {
        let next = self.kept.remove(&block);
        next.is_some_and(|next| self.wanted.remove(&(next, block)))
    }

    fn keep(&mut self, block: Block, next: usize) -> bool {
        if next == NEVER {
            return false;
        }
        self.kept.insert(block, next);
        self.wanted.insert((next, block));
        if self.kept.len() <= self.capacity {
            return true;
        }
        let Some((_, last)) = self.wanted.pop_last() else { return true };
        self.kept.remove(&last);
        last != block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_wanted_latest_goes_and_the_written_is_not_wanted() {
        let block = |number| Block { file: 0, number };
        let accesses = [1, 2, 3, 1, 2, 4, 3].map(|n| Access::Read(block(n)));
        let trace = Trace { name: String::new(), accesses: accesses.to_vec() };
        let mut best = Belady::new(&trace, 2, false);
        let hits = accesses.map(|access| best.step(access) == Some(Outcome::Hit));
        assert_eq!(hits, [false, false, false, true, true, false, false]);

        let accesses = [Access::Read(block(1)), Access::Write(block(1)), Access::Read(block(1))];
        let trace = Trace { name: String::new(), accesses: accesses.to_vec() };
        let mut best = Belady::new(&trace, 2, false);
        let outcomes = accesses.map(|access| best.step(access));
        assert_eq!(outcomes, [Some(Outcome::Passed), None, Some(Outcome::Passed)]);
        let mut best = Belady::new(&trace, 2, true);
        let outcomes = accesses.map(|access| best.step(access));
        assert_eq!(outcomes, [Some(Outcome::Passed), None, Some(Outcome::Hit)]);
    }
}
