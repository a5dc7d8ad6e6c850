//! The policy `atomic`: every write is in the log before it is in the file, however full the log.

use std::fs::OpenOptions;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use crate::common::{Calls, Managed, World, roll_back};
use seawall_core::destage::{Destager, Files};
use seawall_core::file::{Begins, KeptOut};
use seawall_core::{At, Errno, Owner};

const PAGE: usize = 8192;
const POOL: u64 = 16 << 20;

fn atomic(world: &World, name: &str) -> Managed {
    let m = world.manage_as(name, Begins::InLog, false);
    assert!(world.is_tracked(&m), "before its first write");
    m
}

fn page(fill: usize) -> Vec<u8> {
    vec![fill as u8 | 1; PAGE]
}

/// Writes until the log has no room for another one, from thread 0, which then waits.
fn pages_for(pool: u64) -> usize {
    pool as usize / PAGE
}

// Holds: internals/FAILURE_MODEL#promises
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
    let counted = world.slot(&m).counters();
    assert!(world.is_tracked(&m));
    assert_eq!((counted.left, counted.untracked_writes), (0, 0));
    assert!(!world.fsync(&m), "absorbed");
}

// Holds: internals/FAILURE_MODEL#promises
#[test]
fn nobody_waits_for_a_daemon_that_is_gone() {
    let world = World::new(POOL);
    let m = atomic(&world, "16384");
    world.engine.shm().header().daemon_pid().store(0, SeqCst);
    (0..pages_for(POOL) + 1).for_each(|i| world.pwrite(&m, 0, &page(i), (i % 64 * PAGE) as u64));
    assert!(world.engine.gave_up() && !world.engine.gave_up(), "told once");
    assert!(!world.is_tracked(&m) && world.engine.is_exhausted());
    assert_eq!(world.slot(&m).counters().left, 1);
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
    let next_lsn = || world.engine.next_lsn();
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
    assert_eq!(world.slot(&m).counters().left, 0);
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

// Holds: internals/FAILURE_MODEL#promises
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
    assert_eq!(world.slot(&m).counters().left, 3);
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
    let round =
        Destager::new(&world.engine, world.who(7)).round(&mut Meanwhile(&world, &m, Some(world.dead())));
    assert_eq!(round.synced, 1);
    assert!(world.is_tracked(&m) && world.slot(&m).holder() == 0);
}

/// The file leaves the log, and a process dies inside, when the destager has found that it has records.
struct Meanwhile<'a>(&'a World, &'a Managed, Option<Owner>);

impl Files for Meanwhile<'_> {
    fn descriptor(&mut self, _slot: u32) -> std::io::Result<BorrowedFd<'_>> {
        let Self(world, m, dead) = self;
        if let Some(dead) = dead.take() {
            world.engine.keep_out(m.name, KeptOut::Frozen);
            world.engine.pass(world.who(0), m.name, || m.file.sync_data().map_err(|_| Errno::IO), || ());
            world.engine.let_back(m.name, KeptOut::Frozen);
            assert!(!world.is_tracked(m));
            world.dies_inside(m, dead);
        }
        Ok(m.file.as_fd())
    }
}

/// The sync with which a file is taken back into the log fails: its pages would be written in place from then on.
// Holds: internals/FAILURE_MODEL#promises
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
    assert_eq!(world.engine.fsync(world.who(0), m.name, asked_again), Err(Errno::IO));
    assert_eq!(world.destage(&m).readmitted, 0);
}

/// The log is full, nobody frees any of it, and the sync with which the file would leave it fails.
// Holds: internals/FAILURE_MODEL#promises
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
