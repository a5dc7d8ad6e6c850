//! W-TinyLFU: a small LRU window, and behind it a main part into which only those get that are asked for more
//! often than whom they would replace.
//!
//! Einziger, Friedman, Manes (ACM Transactions on Storage 2017), as in Caffeine: a window of a hundredth, the
//! main part a segmented LRU with four fifths protected. Every hit moves a block: this one asks for a lock, and
//! stands here to show what it would be worth.

use super::list::List;
use super::sketch::Sketch;
use super::{Algorithm, Outcome};
use seawall_cache::key::Block;

/// W-TinyLFU.
pub struct TinyLfu {
    sketch: Sketch,
    window: List<()>,
    probation: List<()>,
    protected: List<()>,
    window_capacity: usize,
    main_capacity: usize,
}

impl TinyLfu {
    /// Room for `capacity` blocks.
    pub fn new(capacity: usize) -> Self {
        let window_capacity = (capacity / 100).max(1);
        Self {
            sketch: Sketch::new(capacity),
            window: List::new(),
            probation: List::new(),
            protected: List::new(),
            window_capacity,
            main_capacity: capacity - window_capacity,
        }
    }

    fn protect(&mut self, block: Block) {
        self.protected.push(block, ());
        if self.protected.len() > self.main_capacity * 4 / 5 {
            let demoted = self.protected.pop();
            demoted.into_iter().for_each(|block| self.probation.push(block, ()));
        }
    }

    /// The one that left the window against the one that would leave the main part.
    fn contest(&mut self, candidate: Block) {
        if self.probation.len() + self.protected.len() < self.main_capacity {
            self.probation.push(candidate, ());
            return;
        }
        let Some(victim) = self.probation.oldest().or(self.protected.oldest()) else { return };
        if self.sketch.estimate(candidate) > self.sketch.estimate(victim) {
            let _ = self.probation.remove(victim) || self.protected.remove(victim);
            self.probation.push(candidate, ());
        }
    }
}

impl Algorithm for TinyLfu {
    fn contains(&self, block: Block) -> bool {
        self.window.contains(block) || self.probation.contains(block) || self.protected.contains(block)
    }

    fn read(&mut self, block: Block) -> Outcome {
        self.sketch.count(block);
        if self.window.remove(block) {
            self.window.push(block, ());
            return Outcome::Hit;
        }
        if self.probation.remove(block) || self.protected.remove(block) {
            self.protect(block);
            return Outcome::Hit;
        }
        self.window.push(block, ());
        if self.window.len() > self.window_capacity {
            let candidate = self.window.pop();
            candidate.into_iter().for_each(|block| self.contest(block));
        }
        Outcome::Admitted
    }

    fn kill(&mut self, block: Block) {
        let _ = self.window.remove(block) || self.probation.remove(block) || self.protected.remove(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rare_does_not_replace_the_frequent() {
        let mut cache = TinyLfu::new(100);
        let block = |number| Block { file: 0, number };
        for n in (0..4).flat_map(|_| 0..90) {
            cache.read(block(n));
        }
        (1000..1500).for_each(|n| _ = cache.read(block(n)));
        let kept = (0..90).filter(|n| cache.read(block(*n)) == Outcome::Hit).count();
        assert!(kept > 80, "{kept}");
    }
}
