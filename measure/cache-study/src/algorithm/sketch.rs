//! A count-min sketch: about how often each block was asked for of late, in four half bytes each.
//!
//! Einziger, Friedman, Manes: "TinyLFU" (ACM Transactions on Storage 2017). Four counters of 4 bits stand for a
//! block, the lowest counts; when ten times as many requests as there is room have come, all are halved.

use seawall_cache::key::Block;

const ROWS: usize = 4;
const COUNT_MAX: u8 = 15;

/// The sketch.
pub struct Sketch {
    counts: Vec<[u8; ROWS]>,
    requests: usize,
    period: usize,
}

impl Sketch {
    /// One for a cache of `capacity` blocks.
    pub fn new(capacity: usize) -> Self {
        let width = (capacity * 4).next_power_of_two().max(64);
        Self { counts: vec![[0; ROWS]; width], requests: 0, period: capacity.max(16) * 10 }
    }

    fn places(&self, block: Block) -> [usize; ROWS] {
        let hash = block.hash();
        let (a, b) = (hash as u32, (hash >> 32) as u32 | 1);
        let mask = self.counts.len() - 1;
        std::array::from_fn(|row| a.wrapping_add(b.wrapping_mul(row as u32 + 1)) as usize & mask)
    }

    /// Counts a request.
    pub fn count(&mut self, block: Block) {
        let low = self.estimate(block);
        for (row, at) in self.places(block).into_iter().enumerate() {
            let count = &mut self.counts[at][row];
            if *count == low && low < COUNT_MAX {
                *count += 1;
            }
        }
        self.requests += 1;
        if self.requests >= self.period {
            self.requests /= 2;
            self.counts.iter_mut().flatten().for_each(|count| *count /= 2);
        }
    }

    /// How often it was asked for, at most.
    pub fn estimate(&self, block: Block) -> u8 {
        let places = self.places(block).into_iter().enumerate();
        places.map(|(row, at)| self.counts[at][row]).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_never_too_low_and_fade() {
        let mut sketch = Sketch::new(100);
        let block = |number| Block { file: 0, number };
        (0..100).for_each(|n| sketch.count(block(n)));
        (0..8).for_each(|_| sketch.count(block(3)));
        assert_eq!(sketch.estimate(block(3)), 9);
        assert!((0..100).all(|n| sketch.estimate(block(n)) >= 1));
        (0..2000).for_each(|n| sketch.count(block(n % 50 + 1000)));
        assert!(sketch.estimate(block(3)) <= 5);
    }
}
