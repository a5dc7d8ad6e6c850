//! An image of which not all has memory yet: what a log can do meanwhile, and who goes on with it.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering::SeqCst;

use crate::common::{Managed, World};
use seawall_core::destage::count_free;
use seawall_core::pool::{Pool, block};
use seawall_core::recover::{Mode, Options, recover};
use seawall_core::{inspect, takeover};
use seawall_wire::desk::Desk;
use seawall_wire::shm::SegmentState;

/// More than a start takes memory for.
const LARGE: u64 = 160 << 20;
const SMALL: u64 = 16 << 20;
const JOURNAL: u64 = 8 << 20;
const AUTO: Options = Options { mode: Mode::Auto, accept_loss: false };

/// Bytes of memory that the image has.
fn memory(pool: &Pool) -> u64 {
    pool.file.metadata().expect("stat").blocks() * 512
}

/// All but the first segments have no memory, and never had.
fn forget_memory(world: &World, backed: u32) {
    let layout = world.pool.layout();
    let desk = Desk::new(&world.pool.region, world.pool.superblock.size as usize);
    desk.unbacked().store(layout.segments - backed, SeqCst);
    let (from, len) = (layout.segment(backed) as u64, layout.end() - layout.segment(backed) as u64);
    let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&world.pool.file, flags, from, len).expect("a hole");
    world.engine.shm().header().free_segments().store(count_free(&world.engine), SeqCst);
}

/// A file in the log of a world whose log has so many segments by now.
fn young(backed: u32) -> (World, Managed) {
    let world = World::with_journal(SMALL, JOURNAL);
    forget_memory(&world, backed);
    let m = world.manage("file");
    assert!(world.fsync(&m) && world.is_tracked(&m));
    (world, m)
}

/// Segments that a lane has, or had.
fn used(world: &World) -> Vec<u32> {
    let state = |i| world.engine.shm().segment(i).map(|s| s.state().load(SeqCst));
    (0..world.pool.layout().segments).filter(|i| state(*i) != Some(SegmentState::Free as u32)).collect()
}

#[test]
fn a_start_takes_memory_for_a_few_segments_and_the_others_follow() {
    let world = World::with_journal(LARGE, JOURNAL);
    let (layout, backed) = (world.pool.layout(), world.engine.backed());
    assert!(backed > 0 && backed < layout.segments, "{backed} of {}", layout.segments);
    assert!(memory(&world.pool) < LARGE / 2, "{} bytes", memory(&world.pool));
    assert_eq!(count_free(&world.engine), backed, "what has no memory is no room");
    assert!(world.engine.has_room());
    let freed = world.engine.shm().header().freed().load(SeqCst);
    while world.pool.back(&world.engine, 8 << 20).expect("memory") > 0 {
        let has = layout.segment(world.engine.backed()) as u64;
        assert!(memory(&world.pool) >= has, "{} bytes, and {has} count", memory(&world.pool));
    }
    assert_eq!((world.engine.backed(), count_free(&world.engine)), (layout.segments, layout.segments));
    assert_eq!(world.engine.shm().header().free_segments().load(SeqCst), layout.segments);
    assert_ne!(world.engine.shm().header().freed().load(SeqCst), freed, "who waits for space is woken");
}

#[test]
fn no_lane_takes_a_segment_without_memory_and_a_file_comes_back_when_it_has_some() {
    let (world, m) = young(2);
    let had = memory(&world.pool);
    for i in 0..40 {
        world.pwrite(&m, 0, &[i; 8192], 0);
    }
    assert!(!world.is_tracked(&m), "its log was full");
    assert!(used(&world).iter().all(|i| *i < 2), "{:?}", used(&world));
    assert_eq!(memory(&world.pool), had);
    assert!(world.fsync(&m), "so its sync is real");
    world.destage(&m);
    for _ in 0..6 {
        world.pool.back(&world.engine, 1).expect("memory");
    }
    assert_eq!(world.engine.backed(), 8);
    world.fsync(&m);
    assert!(world.is_tracked(&m));
    for i in 0..30 {
        world.pwrite(&m, 0, &[i; 8192], 0);
    }
    assert!(world.is_tracked(&m) && used(&world).iter().any(|i| *i >= 2), "{:?}", used(&world));
}

#[test]
fn nobody_looks_at_what_has_no_memory() {
    let (mut world, m) = young(3);
    for i in 0..3 {
        world.pwrite(&m, 0, &[i; 8192], 0);
        assert!(!world.fsync(&m));
    }
    let had = memory(&world.pool);
    // The daemon dies, and the next one takes the log over; then all die.
    drop(world.engine);
    world.engine = takeover::start(&mut world.pool, world.memory.path()).expect("a start").engine;
    assert_eq!((world.engine.backed(), world.engine.shm().header().free_segments().load(SeqCst)), (3, 2));
    let seen = block::open_read_only_in(&world.pool.path, world.memory.path()).expect("a look");
    assert_eq!((seen.backed(), inspect::inspect(&seen).live), (3, 3));
    let World { memory: dir, pool, engine, disk, .. } = world;
    let path = pool.path.clone();
    drop((pool, engine, seen));
    let pool = block::open_in(&path, dir.path()).expect("the same image");
    assert_eq!(recover(&pool, AUTO).expect("recovered").records, 3);
    assert_eq!((pool.backed(), memory(&pool)), (3, had), "no page was touched that was not there");
    drop((pool, disk));
}

#[test]
fn what_is_live_has_memory_wherever_it_lies() {
    let world = World::with_journal(LARGE, JOURNAL);
    while world.pool.back(&world.engine, 64 << 20).expect("memory") > 0 {}
    let last = world.pool.layout().segments - 2;
    world.engine.shm().header().segment_cursor().store(last, SeqCst);
    let m = world.manage("file");
    assert!(world.fsync(&m));
    world.pwrite(&m, 0, &[7; 8192], 0);
    assert!(!world.fsync(&m));
    assert_eq!(used(&world), [last]);
    let World { dir, memory: there, pool, engine, disk, .. } = world;
    let path = pool.path.clone();
    drop((pool, engine));
    for entry in std::fs::read_dir(there.path()).expect("memory").flatten() {
        std::fs::remove_file(entry.path()).expect("the power goes");
    }
    let pool = block::open_in(&path, there.path()).expect("another image");
    assert_eq!((pool.backed(), inspect::inspect(&pool).live), (last + 1, 1));
    drop((pool, disk, dir));
}

#[test]
fn a_segment_counts_only_when_it_has_its_memory() {
    let (mut world, _) = young(2);
    // No memory is to be had by this one.
    world.pool.file = File::open(&world.pool.image.as_ref().expect("an image").path).expect("opened");
    assert!(world.pool.back(&world.engine, 1).is_err());
    assert_eq!(world.engine.backed(), 2);
}

#[test]
fn an_image_that_memory_has_no_room_for_is_refused_at_once() {
    let world = World::with_journal(SMALL, JOURNAL);
    let path = world.disk.as_ref().expect("a disk").path().join("huge");
    // Nobody has so much, and the journal of a pool that is so large is not made for a test.
    let sizes = block::Sizes { image: 1 << 45, journal: JOURNAL };
    block::create_file(&path, sizes).expect("a pool");
    let refused = block::open_in(&path, world.memory.path()).map(|pool| pool.path).expect_err("no room");
    assert!(refused.to_string().contains("room"), "{refused}");
    let left = std::fs::read_dir(world.memory.path()).expect("memory").flatten();
    assert_eq!(left.filter(|entry| entry.file_name().to_string_lossy().ends_with(".new")).count(), 0);
}
