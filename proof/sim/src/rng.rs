//! The only source of chance: splitmix64, so that a seed says everything about a run.

use std::cell::Cell;

/// A seeded generator.
pub struct Rng(Cell<u64>);

impl Rng {
    /// A generator that repeats itself for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    /// The next 64 bits.
    pub fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mut x = state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `n`; 0 for 0.
    pub fn below(&self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// A number in `from..to`.
    pub fn range(&self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from))
    }

    /// True once in `n` times.
    pub fn one_in(&self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of the choices.
    pub fn pick<T: Copy>(&self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
