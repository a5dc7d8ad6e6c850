//! S3-FIFO: a small queue on probation, a main one, and a memory of those that failed.
//!
//! Yang, Zhang, Qiu, Yue, Rashmi: "FIFO queues are all you need for cache eviction" (SOSP 2023). A new block
//! enters the small queue, a tenth of the room; at its end it moves to the main queue if it was hit, and is
//! remembered as a ghost if not. A ghost that comes back enters the main queue, in which blocks that were hit get
//! another turn. A hit only counts up to 3.

use super::list::List;
use super::{Algorithm, Outcome};
use seawall_cache::key::Block;

const COUNT_MAX: u8 = 3;

/// S3-FIFO.
pub struct S3Fifo {
    small: List<u8>,
    main: List<u8>,
    ghosts: List<()>,
    capacity: usize,
}

impl S3Fifo {
    /// Room for `capacity` blocks.
    pub fn new(capacity: usize) -> Self {
        Self { small: List::new(), main: List::new(), ghosts: List::new(), capacity }
    }

    fn small_capacity(&self) -> usize {
        (self.capacity / 10).max(1)
    }

    fn make_room(&mut self) {
        while self.small.len() + self.main.len() >= self.capacity {
            if self.small.len() >= self.small_capacity() || self.main.len() == 0 {
                self.leave_small();
            } else {
                self.leave_main();
            }
        }
    }

    fn leave_small(&mut self) {
        let Some(block) = self.small.oldest() else { return };
        let count = self.small.note(block).map_or(0, |count| *count);
        self.small.remove(block);
        if count > 0 {
            self.main.push(block, 0);
        } else {
            self.remember(block);
        }
    }

    fn leave_main(&mut self) {
        while let Some(block) = self.main.oldest() {
            let count = self.main.note(block).map_or(0, |count| *count);
            self.main.remove(block);
            if count == 0 {
                return;
            }
            self.main.push(block, count - 1);
        }
    }

    fn remember(&mut self, block: Block) {
        if self.ghosts.len() >= self.capacity - self.small_capacity() {
            self.ghosts.pop();
        }
        if !self.ghosts.contains(block) {
            self.ghosts.push(block, ());
        }
    }
}

impl Algorithm for S3Fifo {
    fn contains(&self, block: Block) -> bool {
        self.small.contains(block) || self.main.contains(block)
    }

    fn read(&mut self, block: Block) -> Outcome {
        let count = match self.small.note(block) {
            Some(count) => Some(count),
            None => self.main.note(block),
        };
        if let Some(count) = count {
            *count = (*count + 1).min(COUNT_MAX);
            return Outcome::Hit;
        }
        let is_ghost = self.ghosts.remove(block);
        self.make_room();
        if is_ghost {
            self.main.push(block, 0)
        } else {
            self.small.push(block, 0)
        }
        Outcome::Admitted
    }

    fn kill(&mut self, block: Block) {
        if self.small.remove(block) || self.main.remove(block) {
            // It will be wanted again: it was.
            self.remember(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_passes_through_the_small_queue() {
        let mut cache = S3Fifo::new(20);
        let block = |number| Block { file: 0, number };
        for n in (0..10).chain(0..10) {
            cache.read(block(n));
        }
        (100..1000).for_each(|n| _ = cache.read(block(n)));
        assert!((0..10).all(|n| cache.read(block(n)) == Outcome::Hit));
    }

    #[test]
    fn a_ghost_comes_back_to_the_main_queue() {
        let mut cache = S3Fifo::new(20);
        let block = |number| Block { file: 0, number };
        (0..25).for_each(|n| _ = cache.read(block(n)));
        assert!(!cache.small.contains(block(0)) && cache.ghosts.contains(block(0)));
        cache.read(block(0));
        assert!(cache.main.contains(block(0)) && !cache.ghosts.contains(block(0)));
    }
}
