//! Bugs that are planted beside the log of names, in a front, the daemon and the recovery: each is noticed.

use std::time::{Duration, Instant};

use seawall_sim::{Mutant, Plan, Planted, run};

/// Runs within which a bug is noticed.
const RUNS: u64 = 300;
const AT_MOST: Duration = Duration::from_secs(100);

fn noticed(mutant: &Mutant) -> Option<String> {
    let begin = Instant::now();
    let mut plans = (1..=RUNS).map(|seed| Plan { mutant: mutant.clone(), ..Plan::with_names(seed) });
    plans.find_map(|plan| if begin.elapsed() > AT_MOST { None } else { run(&plan).violation })
}

// Holds: internals/FAILURE_MODEL#the-simulator
#[test]
fn a_planted_bug_is_noticed() {
    for (name, planted) in Planted::ALL {
        let why = noticed(&Mutant::Planted(planted));
        println!("{name}: {}", why.as_deref().unwrap_or("nobody noticed"));
        assert!(why.is_some(), "nobody noticed {name}");
    }
}

/// A call that takes a name away relies on its record, and so does a sync's answer.
// Holds: internals/FAILURE_MODEL#the-simulator
#[test]
fn a_record_that_is_not_persisted_before_the_answer_is_noticed() {
    let sites = (1..4).flat_map(|seed| run(&Plan { survey: true, ..Plan::with_names(seed) }).sites);
    let found =
        sites.map(|(site, _)| site).find(|(is_fence, site)| *is_fence && site.contains("engine/names.rs"));
    let (_, site) = found.expect("records of names are fenced");
    let why = noticed(&Mutant::Fence(site.clone()));
    assert!(why.is_some(), "nobody noticed that the fence at {site} is missing");
}
