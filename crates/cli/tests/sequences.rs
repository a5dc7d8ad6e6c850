//! Short sequences of calls on names and files, all of them, after a power cut: the search of CrashMonkey's ACE (Mohan et al.,
//! "Finding Crash-Consistency Bugs with Bounded Black-Box Crash Testing", OSDI 2018), with a log between the file system and
//! the program.
//!
//! Many sequences run side by side, each in a directory of its own, a step at a time. The file system keeps everything up to
//! one step, and of what follows only what a real sync brought to the disk. Then the power goes, the log is replayed, and
//! what each sequence finds must be a state that it could have left: [`model`] says which.
//!
//! All of up to three calls, and some of four and five. `SEAWALL_SEQUENCES=n` takes one of n (1: all), `SEAWALL_SEQUENCES_FROM`
//! others, `SEAWALL_SEQUENCE="fsync b;…"` one alone.

mod common;
#[path = "sequences/model.rs"]
mod model;
#[path = "sequences/steps.rs"]
mod steps;

use std::collections::BTreeMap;

use model::{History, Op};
use steps::{Disk, Front};

/// Side by side. Each takes two to three entries of the file table.
const BATCH: usize = 300;

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// Every sequence of this length that succeeds on an ordinary file system.
fn all(length: usize) -> Vec<History> {
    let mut histories = vec![History::default()];
    for _ in 0..length {
        let longer = |history: &History| Op::all().filter_map(|op| history.then(op)).collect::<Vec<_>>();
        histories = histories.iter().flat_map(longer).collect();
    }
    histories
}

/// One of so many.
fn some(histories: Vec<History>, one_of: usize, from: usize) -> Vec<History> {
    histories.into_iter().skip(from % one_of).step_by(one_of).collect()
}

/// So many of this length, by chance.
fn sampled(length: usize, count: usize, rng: &mut fastrand::Rng) -> Vec<History> {
    let ops: Vec<Op> = Op::all().collect();
    let mut sample = || {
        let mut history = History::default();
        while history.ops.len() < length {
            history = history.then(ops[rng.usize(..ops.len())]).unwrap_or(history);
        }
        history
    };
    (0..count).map(|_| sample()).collect()
}

fn check(kind: &str, front: Front, histories: &[History]) {
    // After which step the last real sync was: whoever has none leaves most to the log, and is not to be helped by others.
    let mut by_last_sync: BTreeMap<usize, Vec<&History>> = BTreeMap::new();
    for batch in histories.chunks(BATCH) {
        let Some(mut disk) = Disk::new("ext4", front) else { return };
        let real = disk.run(&batch.iter().collect::<Vec<_>>(), 0);
        for (history, last) in batch.iter().zip(real) {
            by_last_sync.entry(last).or_default().push(history);
        }
    }
    let mut wrong = Vec::new();
    for (last, alike) in &by_last_sync {
        println!("{kind}, {front:?}: {} sequences whose last real sync is in step {last}", alike.len());
        let longest = alike.iter().map(|history| history.ops.len()).max().unwrap_or(0);
        for (batch, kept) in
            alike.chunks(BATCH).flat_map(|batch| (*last..=longest).map(move |kept| (batch, kept)))
        {
            let Some(mut disk) = Disk::new(kind, front) else { return };
            disk.run(batch, kept);
            wrong.extend(
                disk.cut(batch)
                    .into_iter()
                    .map(|why| format!("{kind}, {front:?}, kept up to step {kept}: {why}")),
            );
        }
    }
    for why in wrong.iter().take(40) {
        println!("{why}");
    }
    assert!(wrong.is_empty(), "{} of {} sequences", wrong.len(), histories.len());
}

#[test]
fn whatever_a_short_sequence_of_calls_left_is_a_state_that_it_had() {
    if let Ok(text) = std::env::var("SEAWALL_SEQUENCE") {
        let histories = [History::parse(&text)];
        return [Front::Preload, Front::Mount]
            .map(|front| check("ext4", front, &histories))
            .into_iter()
            .collect();
    }
    let (one_of, from) =
        (number("SEAWALL_SEQUENCES").unwrap_or(40), number("SEAWALL_SEQUENCES_FROM").unwrap_or(0));
    let mut histories: Vec<History> = all(1);
    histories.extend(some(all(2), one_of.div_ceil(4), from));
    histories.extend(some(all(3), one_of, from));
    let mut rng = fastrand::Rng::with_seed(from as u64);
    for length in [4, 5] {
        histories.extend(sampled(length, 6000 / one_of, &mut rng));
    }
    println!("{} sequences", histories.len());
    check("ext4", Front::Preload, &histories);
    // The same promises by another way, and another journal: some of them.
    let has_calls = |history: &History| history.ops.iter().all(|op| !op.is_nameless());
    let on_mount = histories.iter().filter(|history| has_calls(history)).cloned();
    check("ext4", Front::Mount, &some(on_mount.collect(), 2, from));
    check("xfs", Front::Preload, &some(histories, 5, from));
}
