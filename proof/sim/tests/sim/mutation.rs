//! A slice of the mutations: the flushes and fences of a write and of a file's entry, as many as fit. All of
//! them is `xtask mutate-fences`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use seawall_sim::{Mutant, Plan, run};

const AT_MOST: Duration = Duration::from_secs(40);
/// Runs within which a broken flush or fence is noticed.
const RUNS: u64 = 400;

/// Where what is missing shows within seconds.
const FILES: [&str; 5] = ["persist.rs", "append.rs", "record.rs", "segment.rs", "entry.rs"];

/// The lines of the stages that some runs flush or fence at, the hot path's first.
fn mutants() -> Vec<Mutant> {
    let sites: BTreeSet<_> = (1..5)
        .flat_map(|seed| run(&Plan { survey: true, ..Plan::of(seed) }).sites)
        .filter(|((_, site), _)| FILES.iter().any(|file| site.contains(file)))
        .map(|((is_fence, site), n)| (u64::MAX - n, is_fence, site))
        .collect();
    let mut seen = BTreeSet::new();
    let mutant = |(_, is_fence, site): (u64, bool, String)| match is_fence {
        true => Mutant::Fence(site),
        false => Mutant::Flush(site),
    };
    sites.into_iter().map(mutant).filter(|mutant| seen.insert(format!("{mutant:?}"))).collect()
}

// Holds: internals/FAILURE_MODEL#the-simulator
#[test]
fn a_missing_flush_or_fence_is_noticed() {
    let begin = Instant::now();
    let mutants = mutants();
    let mut killed = 0;
    for mutant in &mutants {
        let mut plans = (1..=RUNS).map(|seed| Plan { mutant: mutant.clone(), ..Plan::of(seed) });
        let noticed = plans.any(|plan| begin.elapsed() > AT_MOST || run(&plan).violation.is_some());
        if begin.elapsed() > AT_MOST {
            break;
        }
        assert!(noticed, "nobody noticed {mutant:?}");
        killed += 1;
    }
    assert!(killed > 0, "not one of {} mutants in {AT_MOST:?}", mutants.len());
}
