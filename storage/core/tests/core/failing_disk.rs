//! A disk that fails a sync. The kernel may drop the pages and report success the next time, so an error is
//! never retried into success: the records stay, and say after a restart what the disk lost.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::rc::Rc;

use crate::common::{Calls, Managed, World, roll_back};
use seawall_core::destage::{Destager, Files};
use seawall_core::file::Flag;
use seawall_core::reap::{self, Writable};
use seawall_core::{Errno, Owner, certain};
use seawall_media::sim::{self, Observer};

/// Every sync through this descriptor fails: it was opened for its path alone.
struct Failing(File);

impl Failing {
    fn of(m: &Managed) -> Self {
        let path_only = rustix::fs::OFlags::PATH.bits() as i32;
        Self(OpenOptions::new().read(true).custom_flags(path_only).open(&m.path).expect("opened"))
    }
}

impl Files for Failing {
    fn descriptor(&mut self, _slot: u32) -> io::Result<BorrowedFd<'_>> {
        Ok(self.0.as_fd())
    }
}

/// A tracked file with ten writes in the log.
fn logged() -> (World, Managed) {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    assert!(world.fsync(&m), "the first one is real");
    (0..10u8).for_each(|i| world.pwrite(&m, 0, &[i + 1; 3000], u64::from(i) * 3000));
    assert!(!world.fsync(&m), "absorbed");
    (world, m)
}

/// From now on: no sync succeeds, none asks the disk again, and the records are all there.
fn assert_never_believed_again(world: World, m: &Managed) {
    assert!(world.engine.state(m.name).has(Flag::FAILED), "`status` says so");
    let asked_again = || -> Result<(), Errno> { panic!("retried into success") };
    assert_eq!(world.engine.fsync(world.who(0), m.name, asked_again), Err(Errno::IO));
    let round = world.destage(m);
    assert_eq!((round.synced, round.failed.len(), round.dirty), (0, 1, 1), "the operator learns of it");
    assert_eq!(world.engine.fsync(world.who(0), m.name, asked_again), Err(Errno::IO));

    let expected = std::fs::read(&m.path).expect("read");
    roll_back(m, &[]);
    let (report, _dir, _memory) = world.recover();
    assert_eq!(report.expect("recovered").live, 10);
    assert_eq!(std::fs::read(&m.path).expect("read"), expected);
}

// Holds: R26
#[test]
fn a_failed_sync_is_passed_on_and_never_retried_into_success() {
    for error in [Errno::IO, Errno::NOSPC, Errno::DQUOT] {
        let (world, m) = logged();
        world.engine.disturb(m.name); // as a rename does
        assert_eq!(world.engine.fsync(world.who(0), m.name, || Err(error)), Err(error));
        assert_never_believed_again(world, &m);
    }
}

#[test]
fn a_sync_that_never_reached_the_disk_is_just_refused() {
    let (world, m) = logged();
    world.engine.disturb(m.name);
    assert_eq!(world.engine.fsync(world.who(0), m.name, || Err(Errno::BADF)), Err(Errno::BADF));
    assert!(world.fsync(&m), "asked again");
    assert!(world.is_tracked(&m));
}

// Holds: R26
#[test]
fn a_failed_sync_in_the_background_is_told_and_keeps_the_records() {
    let (world, m) = logged();
    let round = Destager::new(&world.engine, world.who(7)).round(&mut Failing::of(&m));
    assert_eq!((round.synced, round.failed.len(), round.dirty), (0, 1, 1));
    assert_never_believed_again(world, &m);
}

/// A disk that fails what is written out before the sync, and tells the sync nothing.
struct FailingEarly<'a>(&'a Managed);

impl Files for FailingEarly<'_> {
    fn descriptor(&mut self, _slot: u32) -> io::Result<BorrowedFd<'_>> {
        Ok(self.0.file.as_fd())
    }

    fn write_out(&mut self, _slot: u32, _bytes: Range<u64>, _piece: u64) -> io::Result<()> {
        Err(Errno::IO.into())
    }
}

#[test]
fn an_error_before_the_background_sync_is_not_followed_by_one_that_is_believed() {
    let (world, m) = logged();
    let round = Destager::new(&world.engine, world.who(7)).round(&mut FailingEarly(&m));
    assert_eq!((round.synced, round.failed.len(), round.dirty), (0, 1, 1));
    assert_never_believed_again(world, &m);
}

/// Linux tells an error once to each open description: of two syncs through one, one may succeed.
// Holds: R26
#[test]
fn a_sync_that_succeeds_while_another_fails_retires_nothing() {
    let (world, m) = logged();
    world.engine.disturb(m.name);
    let other = || world.engine.fsync(world.who(1), m.name, || Err(Errno::IO));
    let real = || {
        assert_eq!(other(), Err(Errno::IO));
        Ok(())
    };
    assert_eq!(world.engine.fsync(world.who(0), m.name, real), Ok(()));
    assert_never_believed_again(world, &m);
}

#[test]
fn regression_a_file_that_leaves_while_another_sync_fails_keeps_its_records() {
    let (world, m) = logged();
    let retire = || {
        world.engine.distrust(m.name);
        Ok(())
    };
    world.engine.pass(world.who(0), m.name, retire, || ());
    assert_never_believed_again(world, &m);
}

/// The daemon's threads share a descriptor: one gets the error while the other's sync succeeds.
struct Racing<'a>(&'a World, &'a Managed);

impl Files for Racing<'_> {
    fn descriptor(&mut self, _slot: u32) -> io::Result<BorrowedFd<'_>> {
        let Self(world, m) = self;
        world.engine.disturb(m.name);
        assert_eq!(world.engine.fsync(world.who(1), m.name, || Err(Errno::IO)), Err(Errno::IO));
        Ok(m.file.as_fd())
    }
}

// Holds: R26
#[test]
fn a_background_sync_that_succeeds_while_another_fails_retires_nothing() {
    let (world, m) = logged();
    let round = Destager::new(&world.engine, world.who(7)).round(&mut Racing(&world, &m));
    assert_eq!((round.synced, round.failed.len(), round.dirty), (0, 1, 1));
    assert_never_believed_again(world, &m);
}

// Holds: R26
#[test]
fn a_file_that_cannot_leave_the_log_keeps_its_records() {
    let (world, m) = logged();
    world.engine.pass(world.who(0), m.name, || Err(Errno::IO), || ());
    assert_never_believed_again(world, &m);
}

/// Whoever opens a file after somebody else got its error does not get that error.
struct Anew<'a>(&'a Managed);

impl Writable for Anew<'_> {
    fn writable(&mut self, _slot: u32) -> io::Result<File> {
        File::options().write(true).open(&self.0.path)
    }
}

// Holds: R26
#[test]
fn what_the_dead_left_behind_a_failed_sync_is_not_retired() {
    let (world, m) = logged();
    world.engine.disturb(m.name);
    assert_eq!(world.engine.fsync(world.who(0), m.name, || Err(Errno::IO)), Err(Errno::IO));
    let dead = world.engine.claim_client(0x3fff_fff0, 0).expect("a client");
    world.dies_inside(&m, Owner::new(dead, 1 << 4));
    let reaped = reap::dead(&world.engine, world.who(1), &|client| client == dead, &mut Anew(&m));
    assert_eq!(reaped.locks, 1);
    assert_never_believed_again(world, &m);
}

#[test]
fn a_sync_that_fails_outside_the_log_is_the_kernels_alone() {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    assert_eq!(world.engine.fsync(world.who(0), m.name, || Err(Errno::NOSPC)), Err(Errno::NOSPC));
    assert!(!world.is_tracked(&m));
    assert!(world.fsync(&m), "asked again, and believed: nothing but the kernel stood for it");
}

/// ext4 after a commit of its journal failed: it told whoever waited for that commit, and says yes to everybody else
/// until it is given something to write.
struct Aborted;

impl Observer for Aborted {
    fn syncs(&self, _fd: i32) -> Option<Result<(), i32>> {
        Some(Ok(()))
    }
    fn confirms(&self, _fd: i32) -> Option<Result<(), i32>> {
        Some(Err(Errno::ROFS.raw_os_error()))
    }
}

/// A power cut after that used to leave databases torn: their logs were retired and not on the disk.
// Holds: R27
#[test]
fn regression_a_commit_that_failed_for_somebody_else_retires_nothing() {
    let destage = |world: &World, m: &Managed| {
        let round = world.destage(m);
        assert_eq!((round.synced, round.failed.len(), round.dirty), (0, 1, 1));
    };
    let sync = |world: &World, m: &Managed| {
        world.engine.disturb(m.name);
        let real = || certain::check(m.file.as_fd());
        assert_eq!(world.engine.fsync(world.who(0), m.name, real), Err(Errno::ROFS));
    };
    let leave = |world: &World, m: &Managed| {
        world.engine.pass(world.who(0), m.name, || certain::fdatasync(m.file.as_fd()), || ());
    };
    for retire in [&destage as &dyn Fn(&World, &Managed), &sync, &leave] {
        let (world, m) = logged();
        let before = sim::install(Some(Rc::new(Aborted)));
        retire(&world, &m);
        sim::install(before);
        assert_never_believed_again(world, &m);
    }
}
