//! Writers, keepers and a network, simulated: production's copies, quorums and plans under messages that are late or lost,
//! keepers that forget, writers that do not know that they are none any more, and takeovers at any step.
//!
//! After each takeover the new writer's image must hold every commit that was acknowledged to anybody, in order, and from
//! then on nobody older may acknowledge anything. A seed tells everything: `SEAWALL_KEEPER_SEED=n` runs one,
//! `SEAWALL_KEEPER_SEEDS=n` so many.

mod keeper;
mod scratch;
mod world;
mod writer;

use world::World;

/// A small generator (splitmix64).
pub struct Rng(u64);

impl Rng {
    /// Below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

#[test]
fn no_interleaving_loses_a_commit_or_lets_two_write() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, count) = match number("SEAWALL_KEEPER_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("SEAWALL_KEEPER_SEEDS").unwrap_or(1500)),
    };
    let (mut takeovers, mut commits, mut refused) = (0, 0, 0);
    for seed in first..first + count {
        let mut world = World::new(seed, Rng(seed));
        (0..1500).for_each(|_| world.step());
        takeovers += world.takeovers;
        commits += world.commits();
        refused += world.refused;
    }
    println!(
        "{count} seeds: {takeovers} takeovers, {commits} commits, {refused} takeovers that were refused"
    );
    assert!(count == 1 || takeovers > count / 2 && commits > 4 * count && refused > 0, "it tries too little");
}
