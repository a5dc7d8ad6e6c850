//! SIEVE: one queue, a bit for each block, and a hand that walks from old to new and does not turn back.
//!
//! Zhang, Yang, Yue, Vigfusson, Rashmi: "SIEVE is Simpler than LRU" (NSDI 2024). A hit sets a bit and moves
//! nothing. New blocks enter ahead of the hand, so one that nobody wants again goes when the hand comes by.

use super::list::List;
use super::{Algorithm, Outcome};
use seawall_cache::key::Block;

/// SIEVE.
pub struct Sieve {
    visited: List<bool>,
    hand: Option<Block>,
    capacity: usize,
}

impl Sieve {
    /// Room for `capacity` blocks.
    pub fn new(capacity: usize) -> Self {
        Self { visited: List::new(), hand: None, capacity }
    }

    fn evict(&mut self) {
        let mut at = self.hand.or(self.visited.oldest());
        while let Some(block) = at {
            let next = self.visited.newer(block);
            match self.visited.note(block) {
                Some(visited) if *visited => *visited = false,
                _ => {
                    self.hand = next;
                    self.visited.remove(block);
                    return;
                }
            }
            at = next.or(self.visited.oldest());
        }
    }
}

impl Algorithm for Sieve {
    fn contains(&self, block: Block) -> bool {
        self.visited.contains(block)
    }

    fn read(&mut self, block: Block) -> Outcome {
        if let Some(visited) = self.visited.note(block) {
            *visited = true;
            return Outcome::Hit;
        }
        if self.visited.len() >= self.capacity {
            self.evict();
        }
        self.visited.push(block, false);
        Outcome::Admitted
    }

    fn kill(&mut self, block: Block) {
        if self.hand == Some(block) {
            self.hand = self.visited.newer(block);
        }
        self.visited.remove(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hand_spares_what_was_visited_and_stays_where_it_is() {
        let mut sieve = Sieve::new(3);
        let block = |number| Block { file: 0, number };
        for n in [1, 2, 3, 1] {
            sieve.read(block(n));
        }
        sieve.read(block(4)); // The hand passes 1 and takes 2.
        assert_eq!(sieve.hand, Some(block(3)));
        sieve.read(block(5)); // It goes on at 3, though 1 is not marked any more.
        assert_eq!(
            [1, 2, 3, 4, 5].map(|n| sieve.visited.contains(block(n))),
            [true, false, false, true, true]
        );
    }
}
