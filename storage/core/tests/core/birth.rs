//! A file that somebody syncs while it is empty is in the log from its first write on (policy `tail`).

use std::sync::atomic::Ordering::SeqCst;

use crate::common::{Managed, World, roll_back};
use seawall_core::recover::Report;

const POOL: u64 = 16 << 20;
const SEGMENT: usize = 16 << 20;

/// Empty, on disk, and in the log: as the daemon does for a new segment.
fn newborn(world: &World) -> Managed {
    let m = world.manage("xlogtemp.1");
    assert!(world.fsync(&m), "real");
    assert!(world.is_tracked(&m), "before its first write");
    m
}

fn fill(world: &World, m: &Managed) {
    let zeros = [0; 256 << 10];
    (0..SEGMENT).step_by(zeros.len()).for_each(|at| world.pwrite(m, 0, &zeros, at as u64));
}

#[test]
fn its_zeros_are_lengths_and_a_power_cut_leaves_it_whole() {
    let world = World::new(POOL);
    let m = newborn(&world);
    fill(&world, &m);
    let free = world.engine.shm().header().free_segments().load(SeqCst);
    assert!(free + 1 >= world.engine.layout().segments, "zeros are logged as lengths");
    assert!(!world.fsync(&m), "absorbed");
    world.pwrite(&m, 0, b"a commit", 8192);
    assert!(!world.fsync(&m), "absorbed");
    roll_back(&m, b"");
    let path = m.path.clone();
    let (report, _dir, _memory) = world.recover();
    assert!(matches!(report, Ok(Report { live: 65, .. })), "{report:?}");
    let mut expected = vec![0; SEGMENT];
    expected[8192..8200].copy_from_slice(b"a commit");
    assert!(std::fs::read(path).expect("read") == expected);
}

#[test]
fn a_full_log_is_written_around_and_the_next_fsync_is_real() {
    let world = World::new(POOL);
    let m = newborn(&world);
    let block = [1; 1 << 20];
    (0..2 * POOL).step_by(block.len()).for_each(|at| world.pwrite(&m, 0, &block, at));
    assert!(!world.is_tracked(&m), "nobody waited");
    assert!(world.fsync(&m), "real");
    assert!(world.destage(&m).freed > 0);
    world.fsync(&m);
    assert!(world.is_tracked(&m), "back, as any other");
}

/// A file system whose journal died opens no file for writing. Recovery took the segment for one that the server had removed in the
/// making, as that is what its first name said, and dropped what was acknowledged.
#[test]
fn a_segment_that_cannot_be_opened_is_not_one_that_was_removed() {
    let world = World::new(POOL);
    let m = newborn(&world);
    world.pwrite(&m, 0, b"a commit", 0);
    assert!(!world.fsync(&m), "absorbed");
    let path = m.path.with_file_name("000000010000000000000022");
    std::fs::rename(&m.path, &path).expect("renamed");
    let immutable = |how: &str| {
        let done = std::process::Command::new("chattr").arg(how).arg(&path).status();
        done.is_ok_and(|status| status.success())
    };
    if !immutable("+i") {
        eprintln!("SKIPPED: no file can be made immutable here");
        return;
    }
    let (done, _dir, _memory) = world.recover();
    assert!(immutable("-i"));
    let refused = done.expect_err("refused").to_string();
    assert!(refused.contains("cannot look whether it is there"), "{refused}");
}
