//! Damage: a flipped bit anywhere is an error or changes nothing. Never a wrong byte in a file, never a panic.

use std::os::unix::fs::FileExt;

use crate::common::{World, roll_back};
use seawall_core::format::{Layout, Zone};
use seawall_core::pool;
use seawall_core::recover::{Mode, Options, recover};

/// Bits worth flipping: every bit of the zones in use, some of the payloads.
fn victims(used: usize, layout: Layout) -> impl Iterator<Item = usize> {
    let log = layout.segment(0);
    let dense = (0..104)
        .chain(4096..4200)
        .chain(Layout::retired()..Layout::retired() + 32)
        .chain(Layout::root(0)..Layout::root(0) + 200)
        .chain(Layout::file(0)..Layout::file(0) + 500);
    dense.chain((log..log + used).step_by(13))
}

// Holds: P5, R1, L1
#[test]
fn a_flipped_bit_is_found_or_harmless() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    for i in 0..12u8 {
        world.pwrite(&m, 0, &[i + 1; 1000], u64::from(i) * 900);
    }
    let expected = std::fs::read(&m.path).expect("read");
    let layout = world.pool.layout();
    let image = std::fs::read(&world.pool.path).expect("the pool");
    let (path, used) = (world.pool.path.clone(), 12 * 1088 + 128);
    let World { dir: _dir, memory: _memory, pool: old, engine, .. } = world;
    drop((old, engine));
    let (mut refused, mut shorter) = (0, Vec::new());
    for at in victims(used, layout) {
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("open");
        file.write_all_at(&image[..layout.segment(1)], 0).expect("write");
        file.write_all_at(&[image[at] ^ 1 << (at % 8)], at as u64).expect("write");
        drop(file);
        roll_back(&m, &[]);
        let options = Options { mode: Mode::Replay, accept_loss: false };
        let recovered = pool::open(&path).map_err(|_| ()).and_then(|p| recover(&p, options).map_err(|_| ()));
        let content = std::fs::read(&m.path).expect("read");
        match recovered {
            Err(()) => {
                refused += 1;
                assert!(content.is_empty(), "an error after writing, bit at {at}");
            }
            Ok(_) if content == expected => {}
            // The last record of a lane: a damaged one looks like one that a crash cut. FAILURE_MODEL says so.
            Ok(_) => shorter.push((at, layout.zone(at))),
        }
    }
    assert!(refused > 700, "only {refused} refusals");
    let last_record = layout.segment(0) + 64 + 11 * 1088;
    for (at, zone) in shorter {
        let known = zone == Zone::Segments && (at >= last_record || at < layout.segment(0) + 64);
        assert!(known, "bit at {at} ({zone:?}) was lost in silence");
    }
}
