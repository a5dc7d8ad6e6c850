//! Ours: [`crate::set`] in every set, as the shared index has it.

use super::{Algorithm, Outcome};
use crate::key::Block;
use crate::set::{Heat, Memory, WAYS, admit};

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

impl Algorithm for Sets {
    fn contains(&self, block: Block) -> bool {
        self.sets[self.place(block)].find(block).is_some()
    }

    fn read(&mut self, block: Block) -> Outcome {
        let set = self.set(block);
        if let Some(way) = set.find(block) {
            set.heat = set.heat.warmed(way);
            return Outcome::Hit;
        }
        let free = set.free();
        let place = admit(block.fingerprint(), set.heat, &mut set.memory, free, 0);
        let Some(place) = place else { return Outcome::Passed };
        if let Some(left) = set.blocks[place.way].replace(block) {
            set.memory.remember(left.fingerprint());
        }
        set.heat = place.heat;
        Outcome::Admitted
    }

    fn kill(&mut self, block: Block) {
        let set = self.set(block);
        if let Some(way) = set.find(block) {
            set.blocks[way] = None;
            // It will be wanted again: it was.
            set.memory.remember(block.fingerprint());
        }
    }
}
