//! Random numbers that are the same for the same seed, everywhere and for ever (SplitMix64).

/// A generator; clone it to repeat what it will say.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// One for this seed.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `0..below`; 0 if there is none.
    pub fn below(&mut self, below: u64) -> u64 {
        if below == 0 { 0 } else { self.next_u64() % below }
    }

    /// True in `percent` of all cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of them.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// A generator of its own for a part of the work.
    pub fn fork(&mut self) -> Self {
        Rng(self.next_u64())
    }
}
