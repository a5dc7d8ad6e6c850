//! The choice of [`crate::set`] in every set, as the shared index makes it, without the blocks themselves: what is read and
//! written goes in, and whether it would have been there comes out.

use crate::key::Block;
use crate::set::{Heat, Memory, Newcomer, Policy, WAYS, admit};

/// What became of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The block was there.
    Hit,
    /// It was not, and now it is.
    Admitted,
    /// It was not, and still is not.
    Passed,
}

/// Sets of [`WAYS`] places.
pub struct Sets {
    sets: Vec<Set>,
}

#[derive(Clone, Default)]
struct Set {
    blocks: [Option<Block>; WAYS],
    heat: Heat,
    memory: Memory,
}

impl Sets {
    /// Room for `capacity` blocks, rounded down to whole sets, of which there is at least one.
    pub fn new(capacity: usize) -> Self {
        Self { sets: vec![Set::default(); (capacity / WAYS).max(1)] }
    }

    /// A read of a block of a file with this policy.
    pub fn read_under(&mut self, policy: Policy, block: Block) -> Outcome {
        let set = self.set(block);
        if let Some(way) = set.find(block) {
            set.heat = set.heat.warmed(way);
            return Outcome::Hit;
        }
        let newcomer = Newcomer { fingerprint: block.fingerprint(), policy, is_early: false };
        let free = set.free();
        let place = admit(newcomer, set.heat, &mut set.memory, free, 0);
        let Some(place) = place else { return Outcome::Passed };
        if let Some(left) = set.blocks[place.way].replace(block) {
            set.memory.remember(left.fingerprint());
        }
        set.heat = place.heat;
        Outcome::Admitted
    }

    /// Whether a block is there. Changes nothing.
    pub fn contains(&self, block: Block) -> bool {
        self.sets[self.place(block)].find(block).is_some()
    }

    /// A write to a block: it must not be there any more.
    pub fn kill(&mut self, block: Block) {
        let set = self.set(block);
        if let Some(way) = set.find(block) {
            set.blocks[way] = None;
            // It will be wanted again: it was.
            set.memory.remember(block.fingerprint());
        }
    }

    fn place(&self, block: Block) -> usize {
        block.set(self.sets.len() as u32) as usize
    }

    fn set(&mut self, block: Block) -> &mut Set {
        let set = self.place(block);
        &mut self.sets[set]
    }
}

impl Set {
    fn find(&self, block: Block) -> Option<usize> {
        self.blocks.iter().position(|b| *b == Some(block))
    }

    fn free(&self) -> u16 {
        (0..WAYS).filter(|way| self.blocks[*way].is_none()).map(|way| 1 << way).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: usize = 64 * WAYS;

    /// Reads of a kept file of so many blocks, each of them twice, between many more of another one; how many of the
    /// kept file's are there then, for each hundred.
    fn kept(blocks: usize) -> usize {
        let mut sets = Sets::new(CAPACITY);
        let read = |sets: &mut Sets, policy, file, number: usize| {
            sets.read_under(policy, Block { file, number: number as u32 })
        };
        for round in 0..20 {
            for number in 0..CAPACITY {
                for _ in 0..3 {
                    read(&mut sets, Policy::Default, 2, round * CAPACITY / 4 + number);
                }
                if round == 5 || round == 6 {
                    read(&mut sets, Policy::Keep, 1, number % blocks);
                }
            }
        }
        (0..blocks).filter(|n| sets.contains(Block { file: 1, number: *n as u32 })).count() * 100 / blocks
    }

    #[test]
    fn what_is_kept_stays_through_a_flood_of_others_as_far_as_it_fits() {
        assert_eq!(kept(CAPACITY / 4), 100);
        assert!(kept(CAPACITY / 2) >= 96, "{}", kept(CAPACITY / 2));
        assert!(kept(CAPACITY * 3 / 4) >= 85, "{}", kept(CAPACITY * 3 / 4));
    }
}
