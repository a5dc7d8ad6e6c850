//! Hosts, keepers and a network, simulated: production's copies, answers and writers under frames that are late or lost,
//! keepers that forget, daemons that are killed and replaced in the middle of a batch, writers that do not know that they are
//! none any more, takeovers at any step, and hosts that go on alone with their disk and come back.
//!
//! After each takeover the new writer's files must hold every commit that was acknowledged to anybody, in order, and from
//! then on nobody older may acknowledge anything that it lacks. Copies at the same position are the same. A seed tells
//! everything: `SEAWALL_KEEPER_SEED=n` runs one, `SEAWALL_KEEPER_SEEDS=n` so many from there, or from 0, on.

mod host;
mod keeper;
mod pipe;
mod scratch;
mod volume;
mod world;

use fastrand::Rng;
use world::World;

// Holds: admin/KEEPERS#what-it-survives, admin/KEEPERS#while-a-host-is-alone
#[test]
fn no_interleaving_loses_a_commit_or_lets_two_write() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seed, seeds) = (number("SEAWALL_KEEPER_SEED"), number("SEAWALL_KEEPER_SEEDS"));
    let (first, count) = (seed.unwrap_or(0), seeds.unwrap_or(if seed.is_some() { 1 } else { 1500 }));
    let (mut takeovers, mut commits, mut refused, mut replaced) = (0, 0, 0, 0);
    let (mut alone, mut returned) = (0, 0);
    for seed in first..first + count {
        let mut world = World::new(seed, Rng::with_seed(seed));
        (0..1500).for_each(|_| world.step());
        takeovers += world.takeovers;
        commits += world.commits();
        refused += world.refused;
        replaced += world.replaced;
        (alone, returned) = (alone + world.alone, returned + world.returned);
    }
    println!(
        "{count} seeds: {takeovers} takeovers, {refused} refused, {replaced} daemons replaced, {alone} times \
         alone, {returned} times back, {commits} commits"
    );
    let is_enough = takeovers > count / 2 && commits > 4 * count && refused > 0 && replaced > count / 2;
    let is_enough = is_enough && alone > count / 10 && returned > count / 20;
    assert!(count == 1 || is_enough, "it tries too little");
}
