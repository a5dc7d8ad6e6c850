//! The least recently used block goes: the baseline.

use super::list::List;
use super::{Algorithm, Outcome};
use seawall_cache::key::Block;

/// LRU.
pub struct Lru {
    blocks: List<()>,
    capacity: usize,
}

impl Lru {
    /// Room for `capacity` blocks.
    pub fn new(capacity: usize) -> Self {
        Self { blocks: List::new(), capacity }
    }

    /// Enters a block, or makes it the most recent.
    pub fn touch(&mut self, block: Block) {
        if !self.blocks.remove(block) && self.blocks.len() >= self.capacity {
            self.blocks.pop();
        }
        self.blocks.push(block, ());
    }
}

impl Algorithm for Lru {
    fn contains(&self, block: Block) -> bool {
        self.blocks.contains(block)
    }

    fn read(&mut self, block: Block) -> Outcome {
        let was_there = self.contains(block);
        self.touch(block);
        if was_there { Outcome::Hit } else { Outcome::Admitted }
    }

    fn kill(&mut self, block: Block) {
        self.blocks.remove(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_not_used_for_longest_goes() {
        let mut lru = Lru::new(2);
        let block = |number| Block { file: 0, number };
        let outcomes = [1, 2, 1, 3, 2, 3].map(|n| lru.read(block(n)) == Outcome::Hit);
        assert_eq!(outcomes, [false, false, true, false, false, true]);
    }
}
