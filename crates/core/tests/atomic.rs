//! The policy `atomic`: every write is in the log before it is in the file, however full the log.

mod common;

use std::fs::OpenOptions;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use common::{Managed, World, roll_back};
use seawall_core::{At, Errno, Owner};
use seawall_wire::shm::{File, Flag};

const PAGE: usize = 8192;
const POOL: u64 = 16 << 20;

fn atomic(world: &World, name: &str) -> Managed {
    let m = world.manage(name);
    slot(world, &m).flags().fetch_or(Flag::ATOMIC.0, SeqCst);
    let sync = || m.file.sync_all().map_err(|_| Errno::IO);
    assert!(world.engine.admit(world.who(0), m.name, || true, sync));
    assert!(world.is_tracked(&m), "before its first write");
    m
}

fn slot<'w>(world: &'w World, m: &Managed) -> File<'w> {
    world.engine.shm().file(m.name.slot).expect("the slot")
}

fn page(fill: usize) -> Vec<u8> {
    vec![fill as u8 | 1; PAGE]
}

/// Writes until the log has no room for another one, from thread 0, which then waits.
fn pages_for(pool: u64) -> usize {
    pool as usize / PAGE
}

#[test]
fn a_full_log_is_waited_for() {
    let world = World::new(POOL);
    let m = atomic(&world, "16384");
    let pages = 3 * pages_for(POOL);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..pages).for_each(|i| world.pwrite(&m, 0, &page(i), (i % 64 * PAGE) as u64));
            done.store(true, SeqCst);
        });
        while !done.load(SeqCst) {
            assert!(world.destage(&m).failed.is_empty());
        }
    });
    let f = slot(&world, &m);
    assert!(world.is_tracked(&m));
    assert_eq!((f.left().load(Relaxed), f.untracked_writes().load(Relaxed)), (0, 0));
    assert!(!world.fsync(&m), "absorbed");
}

#[test]
fn nobody_waits_for_a_daemon_that_is_gone() {
    let world = World::new(POOL);
    let m = atomic(&world, "16384");
    world.engine.shm().header().daemon_pid().store(0, SeqCst);
    (0..pages_for(POOL) + 1).for_each(|i| world.pwrite(&m, 0, &page(i), (i % 64 * PAGE) as u64));
    assert!(world.engine.gave_up() && !world.engine.gave_up(), "told once");
    assert!(!world.is_tracked(&m) && world.engine.is_exhausted());
    assert_eq!(slot(&world, &m).left().load(Relaxed), 1);
    assert!(world.fsync(&m), "real");
    // A new daemon frees space, and then takes the file back.
    let first = world.destage(&m);
    assert!(first.freed > 0 && !world.engine.is_exhausted());
    assert_eq!(world.destage(&m).readmitted, u32::from(!world.is_tracked(&m)) + 1);
    assert!(world.is_tracked(&m));
}

#[test]
fn what_fallocate_adds_is_a_record_and_no_reason_to_leave() {
    let world = World::new(POOL);
    let m = atomic(&world, "16384");
    let allocate = |pages: usize, publish: &dyn Fn() -> Result<(), Errno>| {
        let end = (pages * PAGE) as u64;
        world.engine.allocate(world.who(0), m.name, m.file.as_fd(), end, publish)
    };
    let next_lsn = || world.engine.shm().header().next_lsn().load(SeqCst);
    world.pwrite(&m, 0, &page(1), 0);
    let grow = || m.file.set_len(4 * PAGE as u64).map_err(|_| Errno::IO);
    allocate(4, &grow).expect("allocated");
    let before = next_lsn();
    // Blocks below the end, and FALLOC_FL_KEEP_SIZE: nothing that the file holds changes.
    allocate(2, &|| Ok(())).expect("allocated");
    allocate(0, &|| Ok(())).expect("allocated");
    assert_eq!(next_lsn(), before);
    world.pwrite(&m, 0, &page(2), PAGE as u64);
    assert!(world.is_tracked(&m) && !world.fsync(&m), "absorbed");
    assert_eq!(slot(&world, &m).left().load(Relaxed), 0);
    let content = std::fs::read(&m.path).expect("read");
    roll_back(&m, b"");
    let (report, _dir, _memory) = world.recover();
    assert_eq!(report.expect("a recovery").live, 3);
    assert!(std::fs::read(&m.path).expect("read") == content);
}

#[test]
fn an_allocation_that_fails_leaves_the_file_as_it_was() {
    let world = World::new(POOL);
    let m = atomic(&world, "16384");
    world.pwrite(&m, 0, &page(1), 0);
    let full = || Err(Errno::NOSPC);
    let done = world.engine.allocate(world.who(0), m.name, m.file.as_fd(), 1 << 20, full);
    assert_eq!(done, Err(Errno::NOSPC));
    let (report, _dir, _memory) = world.recover();
    assert_eq!(report.expect("a recovery").live, 0, "the record of what did not happen was retired");
    assert_eq!(std::fs::read(&m.path).expect("read"), page(1));
}

#[test]
fn what_leaves_the_log_is_back_before_the_next_write() {
    let world = World::new(POOL);
    let m = atomic(&world, "16384");
    world.pwrite(&m, 0, &page(1), 0);
    let sync = || m.file.sync_data().map_err(|_| Errno::IO);
    world.engine.pass(world.who(0), m.name, sync, || m.file.set_len(4 * PAGE as u64)).expect("extended");
    assert!(world.is_tracked(&m), "after a fallocate");
    let data = page(2);
    let short = || Ok(PAGE / 2);
    let at = At::Offset(PAGE as u64);
    let n = world.engine.write(world.who(0), m.name, m.file.as_fd(), at, [&data[..]].into_iter(), short);
    assert_eq!(n, Ok(PAGE / 2));
    assert!(world.is_tracked(&m), "after a short write");
    world.pwrite(&m, 0, &vec![3; POOL as usize / 3], 0);
    assert!(world.is_tracked(&m), "after a write that the log cannot hold");
    assert_eq!(slot(&world, &m).left().load(Relaxed), 3);
    let before = std::fs::read(&m.path).expect("read");
    world.pwrite(&m, 0, &page(4), 0);
    let after = std::fs::read(&m.path).expect("read");
    roll_back(&m, &before);
    let (report, _dir, _memory) = world.recover();
    assert_eq!(report.expect("a recovery").live, 1, "only what came after");
    assert!(std::fs::read(&m.path).expect("read") == after);
}

/// A process died while its change had the file out of the log, and the destager was the first to find its lock: it
/// dealt with what the dead one left, and let the next write go around the log.
#[test]
fn regression_what_the_destager_inherits_is_back_in_the_log() {
    let world = World::new(POOL);
    let m = atomic(&world, "16384");
    world.pwrite(&m, 0, &page(1), 0);
    let f = slot(&world, &m);
    f.flags().fetch_and(!Flag::TRACKED.0, SeqCst);
    let dead = Owner::new(world.engine.claim_client(0x3fff_fff0, 0).expect("a client"), 1 << 4);
    f.lock().store(dead.word(), SeqCst);
    assert_eq!(world.destage(&m).synced, 1);
    assert!(world.is_tracked(&m) && f.lock().load(SeqCst) == 0);
}

/// The sync with which a file is taken back into the log fails: its pages would be written in place from then on.
#[test]
fn a_file_that_failed_a_sync_outside_the_log_is_not_written_any_more() {
    let world = World::new(POOL);
    let m = atomic(&world, "16384");
    world.pwrite(&m, 0, &page(1), 0);
    let before = std::fs::read(&m.path).expect("read");
    let refused = || Err(Errno::IO);
    world.engine.pass(world.who(0), m.name, refused, || ());
    assert!(!world.is_tracked(&m));
    let data = page(2);
    let write = || m.file.write_at(&data, 0).map_err(|_| Errno::IO);
    let at = At::Offset(0);
    let done = world.engine.write(world.who(0), m.name, m.file.as_fd(), at, [&data[..]].into_iter(), write);
    assert_eq!(done, Err(Errno::IO));
    let cut = || m.file.set_len(0).map_err(|_| Errno::IO);
    assert_eq!(world.engine.truncate(world.who(0), m.name, m.file.as_fd(), 0, cut), Err(Errno::IO));
    assert!(std::fs::read(&m.path).expect("read") == before, "neither was published");
    let asked_again = || -> Result<(), Errno> { panic!("retried into success") };
    assert_eq!(world.engine.sync(world.who(0), m.name, asked_again), Err(Errno::IO));
    assert_eq!(world.destage(&m).readmitted, 0);
}

/// The log is full, nobody frees any of it, and the sync with which the file would leave it fails.
#[test]
fn a_write_does_not_go_around_the_log_when_the_sync_before_it_fails() {
    let world = World::new(POOL);
    let m = atomic(&world, "16384");
    world.pwrite(&m, 0, &page(1), 0);
    let data = vec![3; POOL as usize / 3];
    let path_only = rustix::fs::OFlags::PATH.bits() as i32;
    let no_sync = OpenOptions::new().read(true).custom_flags(path_only).open(&m.path).expect("opened");
    let publish = || -> Result<usize, Errno> { panic!("published in place") };
    let at = At::Offset(0);
    let done =
        world.engine.write(world.who(0), m.name, no_sync.as_fd(), at, [&data[..]].into_iter(), publish);
    assert_eq!(done, Err(Errno::IO));
    assert_eq!(std::fs::read(&m.path).expect("read"), page(1));
}
