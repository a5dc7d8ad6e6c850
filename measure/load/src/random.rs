//! Random numbers for loads: fast, repeatable from a seed, no secrets.

use crate::block::mix;

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of one worker of one run.
    pub fn new(seed: u64, worker: u64) -> Self {
        Random(mix(seed ^ mix(worker.wrapping_add(1))))
    }

    /// A seed that differs from run to run.
    pub fn fresh_seed() -> u64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        mix(now.as_nanos() as u64 ^ u64::from(std::process::id()) << 40)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        // Weyl's sequence, mixed: it cannot run into a short cycle.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        assert!(limit > 0, "no number is below 0");
        ((u128::from(self.any()) * u128::from(limit)) >> 64) as u64
    }

    /// A number from `first` to `last`, both included.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        assert!(first <= last, "{first} to {last} is not a range");
        first + self.below(last - first + 1)
    }

    /// A fraction from 0 up to, not including, 1.
    pub fn fraction(&mut self) -> f64 {
        (self.any() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True in `percent` of 100 cases.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }
}

/// The numbers from 0 to `len - 1` in a random order that needs no memory: a Feistel network over the next
/// power of four, walked until it lands inside.
#[derive(Clone, Debug)]
pub struct Shuffled {
    len: u64,
    half_bits: u32,
    seed: u64,
}

impl Shuffled {
    /// An order of `len` numbers.
    pub fn new(len: u64, seed: u64) -> Self {
        let bits = 64 - len.saturating_sub(1).leading_zeros();
        Shuffled { len, half_bits: bits.div_ceil(2).max(1), seed }
    }

    /// The number at a position.
    pub fn at(&self, position: u64) -> u64 {
        assert!(position < self.len, "{position} of {}", self.len);
        let mut number = self.step(position);
        while number >= self.len {
            number = self.step(number);
        }
        number
    }

    fn step(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for round in 0..4 {
            let mixed = mix(self.seed ^ (round << 56) ^ right) & mask;
            (left, right) = (right, left ^ mixed);
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_order_has_every_number_once() {
        for len in [1, 2, 3, 63, 64, 65, 1000, 4096, 5000] {
            let order = Shuffled::new(len, 7);
            let mut seen: Vec<u64> = (0..len).map(|position| order.at(position)).collect();
            let in_place = seen.iter().enumerate().filter(|(i, n)| *i as u64 == **n).count();
            assert!(
                len < 1000 || in_place < 10,
                "{in_place} of {len} numbers are where they would be unshuffled"
            );
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..len), "{len}");
        }
    }

    #[test]
    fn numbers_fill_their_range() {
        let mut random = Random::new(1, 2);
        let mut seen = [0; 10];
        for _ in 0..10_000 {
            seen[random.between(3, 12) as usize - 3] += 1;
        }
        assert!(seen.iter().all(|n| (800..1200).contains(n)), "{seen:?}");
        let hits = (0..10_000).filter(|_| random.percent(25)).count();
        assert!((2200..2800).contains(&hits), "{hits}");
    }

    #[test]
    fn workers_differ_and_seeds_repeat() {
        assert_ne!(Random::new(1, 0).any(), Random::new(1, 1).any());
        assert_eq!(Random::new(1, 1).any(), Random::new(1, 1).any());
    }
}
