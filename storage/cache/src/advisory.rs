//! What another size would give: the choice itself, run in small over a sample of what is asked for.
//!
//! A sample of one block in n, through a cache of one n-th of the size, is hit about as often as all of them through
//! the whole (Waldspurger and others: "Efficient MRC Construction with SHARDS", FAST 2015, and "Cache Modeling and
//! Optimization using Miniature Simulations", ATC 2017). So a few small caches of different sizes tell what those
//! sizes would give, with the algorithm that is used, whatever it is.
//!
//! Inputs: the [samples](crate::shared::Cache::samples). Not handled here: reads that the page cache answers. They
//! are not sampled, so the page cache may have what a smaller cache seems to lose.

use crate::access::Access;
use crate::model::{Outcome, Sets};
use crate::set::Policy;
use crate::shared::ONE_IN;

/// Sizes, in percent of the cache's.
pub const SIZES: [u32; 4] = [50, 100, 200, 400];

/// The small caches.
pub struct Advisory {
    sizes: Vec<Size>,
}

struct Size {
    percent: u32,
    cache: Sets,
    reads: u64,
    hits: u64,
}

/// What a size would give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The size, in percent of the cache's.
    pub percent: u32,
    /// Hits for each hundred reads; 0 if there were none.
    pub hit_percent: f64,
    /// Reads that were sampled: few of them say little.
    pub reads: u64,
    /// Those of them that would have been hits.
    pub hits: u64,
}

impl Advisory {
    /// For a cache of so many blocks.
    pub fn new(blocks: u64) -> Self {
        let size = |percent: u32| {
            let capacity = blocks * u64::from(percent) / 100 / ONE_IN;
            Size { percent, cache: Sets::new(capacity as usize), reads: 0, hits: 0 }
        };
        Self { sizes: SIZES.map(size).into() }
    }

    /// Takes the next sample, of a file with this policy.
    pub fn take(&mut self, access: Access, policy: Policy) {
        for size in &mut self.sizes {
            match access {
                Access::Read(block) => {
                    size.reads += 1;
                    size.hits += u64::from(size.cache.read_under(policy, block) == Outcome::Hit);
                }
                Access::Write(block) => size.cache.kill(block),
            }
        }
    }

    /// Forgets what was counted, and goes on with the caches as they are: for the estimates of a period.
    pub fn begin_period(&mut self) {
        self.sizes.iter_mut().for_each(|size| (size.reads, size.hits) = (0, 0));
    }

    /// What each size would have given in this period.
    pub fn estimates(&self) -> Vec<Estimate> {
        let estimate = |size: &Size| Estimate {
            percent: size.percent,
            hit_percent: size.hits as f64 * 100.0 / size.reads.max(1) as f64,
            reads: size.reads,
            hits: size.hits,
        };
        self.sizes.iter().map(estimate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Block;
    use crate::shared::is_sampled;

    /// Blocks of a file, the popular ones a hundred times as often as the others.
    fn accesses() -> impl Iterator<Item = Block> {
        let mut state = 1u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        (0..1_500_000).map(move |_| {
            let number = if random(2) == 0 { random(20_000) } else { random(200_000) };
            Block { file: 1, number: number as u32 }
        })
    }

    #[test]
    fn the_sample_tells_what_each_size_gives() {
        const BLOCKS: u64 = 32_000;
        let mut advisory = Advisory::new(BLOCKS);
        let mut whole: Vec<_> =
            SIZES.map(|percent| Sets::new(BLOCKS as usize * percent as usize / 100)).into();
        let mut hits = [0u32; SIZES.len()];
        for (i, block) in accesses().enumerate() {
            if i == 750_000 {
                advisory.begin_period();
                hits = [0; SIZES.len()];
            }
            for (cache, hits) in whole.iter_mut().zip(&mut hits) {
                *hits += u32::from(cache.read_under(Policy::Default, block) == Outcome::Hit);
            }
            if is_sampled(block) {
                advisory.take(Access::Read(block), Policy::Default);
            }
        }
        for (estimate, hits) in advisory.estimates().into_iter().zip(hits) {
            let truth = f64::from(hits) / 7500.0;
            assert!((estimate.hit_percent - truth).abs() < 3.0, "{truth:.1} is true: {estimate:?}");
        }
    }
}
