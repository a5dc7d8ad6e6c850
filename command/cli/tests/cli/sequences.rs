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

mod model;
mod op;
mod steps;

use std::collections::BTreeMap;

use model::History;
use op::Op;
use steps::{Disk, Front};

/// Side by side. Each takes two to three entries of the file table.
const BATCH: usize = 300;

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

fn takes_all() -> bool {
    number("SEAWALL_SEQUENCES") == Some(1)
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
    // After which step the last real sync was, and the last one of the log: whoever has none leaves most to the log, and is not
    // to be helped by others.
    let mut by_last_sync: BTreeMap<(usize, usize), Vec<&History>> = BTreeMap::new();
    for batch in histories.chunks(BATCH) {
        let Some(mut disk) = Disk::new("ext4", front) else { return };
        let real = disk.run(&batch.iter().collect::<Vec<_>>(), 0);
        for (history, last) in batch.iter().zip(real) {
            let hardened = history.ops.iter().rposition(Op::is_sync).map_or(0, |at| at + 1);
            let key = match front {
                Front::OnDisk if takes_all() => (last, hardened),
                // A log on a disk takes a while to be made.
                Front::OnDisk => (0, hardened),
                Front::Preload | Front::Mount => (last, 0),
            };
            by_last_sync.entry(key).or_default().push(history);
        }
    }
    let mut wrong = Vec::new();
    for ((last, hardened), alike) in &by_last_sync {
        let count = alike.len();
        println!(
            "{kind}, {front:?}: {count} sequences, of whose syncs {last} is the last real one, {hardened} the last at all"
        );
        let longest = alike.iter().map(|history| history.ops.len()).max().unwrap_or(0);
        // Of a part only what the file system is behind with the most, and ahead.
        let is_taken =
            |kept: &usize| front != Front::OnDisk || takes_all() || [*last, longest].contains(kept);
        let kept: Vec<usize> = (*last..=longest).filter(is_taken).collect();
        for (batch, &kept) in alike.chunks(BATCH).flat_map(|batch| kept.iter().map(move |kept| (batch, kept)))
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
        return [Front::Preload, Front::Mount, Front::OnDisk]
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
    // The same promises by another way, another journal, and another kind of log: some of them.
    let has_calls = |history: &History| history.ops.iter().all(|op| !op.is_nameless());
    let on_mount: Vec<History> = histories.iter().filter(|history| has_calls(history)).cloned().collect();
    let parts = [
        ("ext4", Front::Preload, histories.clone()),
        ("ext4", Front::Mount, some(on_mount, 2, from)),
        ("xfs", Front::Preload, some(histories.clone(), 5, from)),
        ("ext4", Front::OnDisk, some(histories, 3, from)),
    ];
    std::thread::scope(|scope| {
        for (kind, front, histories) in &parts {
            scope.spawn(move || check(kind, *front, histories));
        }
    });
}
