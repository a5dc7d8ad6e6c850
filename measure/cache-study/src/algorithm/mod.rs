//! Admission and eviction: the published algorithms, and ours, behind one trait.
//!
//! Inputs: reads and writes of blocks, in order. Outputs: for each read whether the block was there, and whether
//! it is now. None of them holds content. A write takes its block out: what is written next is read from the page
//! cache first, and comes back when it has left that.

mod belady;
mod list;
mod lru;
mod s3_fifo;
mod sieve;
mod sketch;
mod tiny_lfu;
mod verbs;

pub use belady::Belady;
pub use lru::Lru;
pub use s3_fifo::S3Fifo;
use seawall_cache::model::Sets;
pub use sieve::Sieve;
pub use tiny_lfu::TinyLfu;
pub use verbs::{Algorithm, Outcome};

/// The algorithms that are compared, in the order of the table's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The least recently used block goes.
    Lru,
    /// SIEVE (NSDI'24).
    Sieve,
    /// S3-FIFO (SOSP'23).
    S3Fifo,
    /// W-TinyLFU (ACM ToS 2017).
    TinyLfu,
    /// Ours: [`seawall_cache::set`].
    Sets,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Lru, Self::Sieve, Self::S3Fifo, Self::TinyLfu, Self::Sets];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lru => "LRU",
            Self::Sieve => "SIEVE",
            Self::S3Fifo => "S3-FIFO",
            Self::TinyLfu => "W-TinyLFU",
            Self::Sets => "sets",
        }
    }

    /// One that has room for `capacity` blocks and is empty.
    pub fn make(self, capacity: usize) -> Box<dyn Algorithm> {
        match self {
            Self::Lru => Box::new(Lru::new(capacity)),
            Self::Sieve => Box::new(Sieve::new(capacity)),
            Self::S3Fifo => Box::new(S3Fifo::new(capacity)),
            Self::TinyLfu => Box::new(TinyLfu::new(capacity)),
            Self::Sets => Box::new(Sets::new(capacity)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seawall_cache::key::Block;

    fn block(number: u32) -> Block {
        Block { file: 1, number }
    }

    /// What every one of them must do, whatever it keeps: no hit of what was not admitted or was killed since,
    /// never more blocks than there is room.
    #[test]
    fn nothing_is_hit_that_is_not_there() {
        use std::collections::HashSet;
        let mut state = 7u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for kind in Kind::ALL {
            let capacity = 64;
            let (mut cache, mut seen) = (kind.make(capacity), HashSet::new());
            let mut hits = 0;
            for _ in 0..20_000 {
                let block = block(random(100).min(random(100)) as u32);
                if random(10) == 0 {
                    cache.kill(block);
                    seen.remove(&block);
                    continue;
                }
                match cache.read(block) {
                    Outcome::Hit => {
                        assert!(seen.contains(&block), "{}: a hit out of nothing", kind.name());
                        hits += 1;
                    }
                    Outcome::Admitted => _ = seen.insert(block),
                    Outcome::Passed => _ = seen.remove(&block),
                }
            }
            assert!(hits > 4000, "{}: {hits} hits", kind.name());
            let held = (0..100).filter(|n| cache.read(block(*n)) == Outcome::Hit).count();
            assert!(held <= capacity, "{}: {held} of {capacity}", kind.name());
        }
    }
}
