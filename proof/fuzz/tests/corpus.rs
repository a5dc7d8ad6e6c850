//! Every input that was worth keeping, and a few thousand more from a seed: what the fuzzer does for hours, in
//! seconds and always the same.

use std::path::Path;

use seawall_fuzz::TARGETS;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut paths: Vec<_> = std::fs::read_dir(dir).expect("a corpus").flatten().map(|e| e.path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("read")).collect()
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ x >> 27
}

/// An input of the corpus with some bytes changed, removed or taken from another one.
fn mutated(corpus: &[Vec<u8>], state: &mut u64) -> Vec<u8> {
    let pick = |state: &mut u64| corpus[next(state) as usize % corpus.len()].clone();
    let mut bytes = pick(state);
    for _ in 0..1 + next(state) % 4 {
        let at = next(state) as usize % (bytes.len() + 1);
        match next(state) % 4 {
            0 => bytes.truncate(at),
            1 => bytes.extend(pick(state).iter().skip(at)),
            2 => bytes.insert(at, next(state) as u8),
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = next(state) as u8),
        }
    }
    bytes
}

fn run(name: &str, more: u32) {
    let (_, target) = TARGETS.iter().find(|(target, _)| *target == name).expect("a target");
    let corpus = corpus(name);
    assert!(!corpus.is_empty());
    corpus.iter().for_each(|bytes| target(bytes));
    let mut state = 1;
    for _ in 0..more {
        target(&mutated(&corpus, &mut state));
    }
}

#[test]
fn pools_are_refused_or_recovered_and_nothing_else_is_touched() {
    run("image", 2000);
}

#[test]
fn control_messages_are_answered() {
    run("messages", 300);
}

// Holds: R22
#[test]
fn a_keeper_answers_or_hangs_up_and_keeps_its_quota_and_other_logs() {
    run("keeper", 1000);
}

// Holds: R23
#[test]
fn a_writer_hears_anything_and_counts_only_what_was_confirmed() {
    run("answers", 5000);
}

#[test]
fn a_guest_gets_what_it_named_and_nothing_else() {
    run("disk", 3000);
}

#[test]
fn settings_are_understood_or_refused() {
    run("settings", 20_000);
}
