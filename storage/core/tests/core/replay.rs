//! The log against a model: whatever was written and synced comes back after the disk fell behind.

use std::os::fd::AsFd;

use crate::common::{Calls, Managed, World, roll_back};
use proptest::prelude::*;
use seawall_core::Errno;

const SPAN: usize = 300_000;

#[derive(Clone, Debug)]
enum Op {
    Write { at: usize, len: usize, fill: u8 },
    Zeros { at: usize, len: usize },
    Truncate(usize),
    Sync,
    Destage,
    Disturb,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..SPAN, prop_oneof![1usize..300, 4000usize..9000, 60_000usize..200_000], 1u8..)
            .prop_map(|(at, len, fill)| Op::Write { at, len, fill }),
        2 => (0..SPAN, 1usize..70_000).prop_map(|(at, len)| Op::Zeros { at, len }),
        1 => (0..SPAN).prop_map(Op::Truncate),
        2 => Just(Op::Sync),
        1 => Just(Op::Destage),
        1 => Just(Op::Disturb),
    ]
}

/// The file as the database sees it, and as it is surely on disk.
struct Model {
    seen: Vec<u8>,
    disk: Vec<u8>,
}

impl Model {
    fn put(&mut self, at: usize, data: &[u8]) {
        let end = at + data.len();
        self.seen.resize(self.seen.len().max(end), 0);
        self.seen[at..end].copy_from_slice(data);
    }
}

fn apply(world: &World, m: &Managed, model: &mut Model, op: &Op) {
    match *op {
        Op::Write { at, len, fill } => {
            let data: Vec<u8> = (0..len).map(|i| fill.wrapping_add((i / 7) as u8)).collect();
            world.pwrite(m, 0, &data, at as u64);
            model.put(at, &data);
        }
        Op::Zeros { at, len } => {
            world.pwrite(m, 0, &vec![0; len], at as u64);
            model.put(at, &vec![0; len]);
        }
        Op::Truncate(len) => {
            world.truncate(m, len as u64);
            model.seen.resize(len, 0);
        }
        Op::Sync => {
            if world.fsync(m) {
                model.disk = model.seen.clone();
            }
        }
        Op::Destage => {
            let round = world.destage(m);
            assert!(round.failed.is_empty());
            if round.synced > 0 {
                model.disk = model.seen.clone();
            }
        }
        Op::Disturb => world.engine.disturb(m.name),
    }
    if !world.is_tracked(m) {
        // Untracked means retired: what is not on disk is the kernel's to lose, as without Seawall.
        world.fsync(m);
        model.disk = model.seen.clone();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    // Holds: P1, P2
    #[test]
    fn every_write_survives(ops in prop::collection::vec(op(), 1..60)) {
        let world = World::new(16 << 20);
        let m = world.manage("000000010000000000000001");
        world.fsync(&m);
        let mut model = Model { seen: Vec::new(), disk: Vec::new() };
        for op in &ops {
            apply(&world, &m, &mut model, op);
            let now = std::fs::read(&m.path).expect("read");
            prop_assert!(now == model.seen, "the file differs before any crash, after {op:?}");
        }
        roll_back(&m, &model.disk);
        let (report, _dir, _memory) = world.recover();
        let report = report.expect("a recovery");
        let after = std::fs::read(&m.path).expect("read");
        prop_assert!(after == model.seen, "{} bytes for {}; {report:?}", after.len(), model.seen.len());
    }
}

// Holds: K9
#[test]
fn recovery_is_idempotent_until_it_closes_and_finds_nothing_afterwards() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    world.pwrite(&m, 0, &[7; 8192], 0);
    roll_back(&m, &[]);
    let path = world.pool.path.clone();
    let (first, _dir, _memory) = world.recover();
    assert_eq!(first.expect("a recovery").live, 1);
    roll_back(&m, &[1]);
    let pool = seawall_core::pool::open(&path).expect("open");
    let options =
        seawall_core::recover::Options { mode: seawall_core::recover::Mode::Replay, accept_loss: false };
    let second = seawall_core::recover::recover(&pool, options).expect("a recovery");
    assert_eq!((second.live, second.bytes), (0, 0));
    assert_eq!(std::fs::read(&m.path).expect("read"), [1], "a closed log touches nothing");
}

// Holds: P5, R2
#[test]
fn renamed_files_are_found_and_missing_ones_are_named() {
    let world = World::new(16 << 20);
    let (kept, lost) = (world.manage("kept"), world.manage("lost"));
    for m in [&kept, &lost] {
        world.fsync(m);
        world.pwrite(m, 0, b"acknowledged", 0);
    }
    std::fs::rename(&kept.path, world.dir.path().join("elsewhere")).expect("rename");
    std::fs::remove_file(&lost.path).expect("unlink");
    roll_back(&kept, &[]);
    let elsewhere = world.dir.path().join("elsewhere");
    let path = world.pool.path.clone();
    let (refused, _dir, _memory) = world.recover();
    let text = refused.expect_err("a missing file").to_string();
    assert!(text.contains("lost (1 records)"), "{text}");
    assert_eq!(std::fs::read(&elsewhere).expect("read"), [], "nothing was replayed");
    let pool = seawall_core::pool::open(&path).expect("open");
    let options =
        seawall_core::recover::Options { mode: seawall_core::recover::Mode::Replay, accept_loss: true };
    let report = seawall_core::recover::recover(&pool, options).expect("a recovery");
    assert_eq!(report.given_up.len(), 1);
    assert_eq!(std::fs::read(&elsewhere).expect("read"), b"acknowledged");
}

// Holds: P4, L9
#[test]
fn a_full_log_goes_around_and_comes_back() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    let chunk = vec![3; 1 << 20];
    for i in 0..32 {
        world.pwrite(&m, 0, &chunk, i << 20);
    }
    assert!(!world.is_tracked(&m), "16 MiB cannot hold 32");
    assert!(world.fsync(&m), "out of the log a sync is real");
    assert!(!world.is_tracked(&m), "no room yet");
    let round = world.destage(&m);
    assert!(round.freed > 200, "{round:?}");
    assert!(world.fsync(&m));
    assert!(world.is_tracked(&m), "room again");
    assert!(!world.fsync(&m));
}

/// Whoever commits in turn with others, each with a real sync, finds them writing during all of them.
// Holds: L9
#[test]
fn regression_a_file_that_others_write_all_the_time_comes_back() {
    let world = World::new(16 << 20);
    let m = world.manage("redo");
    world.fsync(&m);
    for i in 0..32 {
        world.pwrite(&m, 0, &vec![3; 1 << 20], i << 20);
    }
    world.fsync(&m);
    world.destage(&m);
    assert!(!world.is_tracked(&m), "it left");
    let mut syncs = 0;
    std::thread::scope(|scope| {
        let sync = || {
            syncs += 1;
            let other = scope.spawn(|| world.pwrite(&m, 1, b"meanwhile", 0));
            // The second time it would wait for us.
            if syncs == 1 {
                other.join().expect("written");
            }
            m.file.sync_data().map_err(|_| Errno::IO)
        };
        world.engine.fsync(world.who(0), m.name, sync).expect("a sync");
    });
    assert_eq!(syncs, 2);
    assert!(world.is_tracked(&m), "it is back");
    assert!(!world.fsync(&m), "and what came meanwhile is in the log");
}

// Holds: P3
#[test]
fn threads_write_at_once_and_nothing_is_lost() {
    let world = World::new(64 << 20);
    let files: Vec<Managed> = (0..4).map(|i| world.manage(&format!("wal{i}"))).collect();
    for m in &files {
        world.fsync(m);
    }
    std::thread::scope(|scope| {
        for t in 0..8usize {
            let (world, m) = (&world, &files[t % 4]);
            scope.spawn(move || {
                for i in 0..200u64 {
                    let data = vec![(t as u8 * 31).wrapping_add(i as u8) | 1; 100 + (i as usize * 37) % 9000];
                    world.pwrite(m, t, &data, (t as u64 / 4) * 4_000_000 + i * 9100);
                }
            });
        }
    });
    let expected: Vec<_> = files.iter().map(|m| std::fs::read(&m.path).expect("read")).collect();
    files.iter().for_each(|m| roll_back(m, &[]));
    let (report, _dir, _memory) = world.recover();
    assert_eq!(report.expect("a recovery").live, 1600);
    for (m, expected) in files.iter().zip(expected) {
        assert!(std::fs::read(&m.path).expect("read") == expected);
    }
}

#[test]
fn a_failed_publish_is_not_replayed() {
    use seawall_core::{At, Errno};
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    world.pwrite(&m, 0, b"good", 0);
    let slices = [&b"never"[..]];
    let refused =
        world.engine.write(world.who(0), m.name, m.file.as_fd(), At::Offset(0), slices.into_iter(), || {
            Err(Errno::NOSPC)
        });
    assert_eq!(refused, Err(Errno::NOSPC));
    let (report, _dir, _memory) = world.recover();
    assert_eq!(report.expect("a recovery").live, 0);
    assert_eq!(std::fs::read(&m.path).expect("read"), b"good");
}
