//! A slot gets a file, loses it, and gets another one: nobody takes the one for the other.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd};

use crate::common::{Calls, Managed, World, roll_back};
use seawall_core::destage::{Destager, Files};
use seawall_core::file::{Begins, KeptOut};
use seawall_core::{Errno, table};

const POOL: u64 = 16 << 20;

fn sync(m: &Managed) -> Result<(), Errno> {
    m.file.sync_data().map_err(|_| Errno::IO)
}

/// Takes a file of which every write is to be logged out of the log, where it stays until somebody takes it back.
fn take_out(world: &World, m: &Managed) {
    world.engine.keep_out(m.name, KeptOut::Frozen);
    world.engine.pass(world.who(0), m.name, || sync(m), || ());
    world.engine.let_back(m.name, KeptOut::Frozen);
    assert!(!world.is_tracked(m));
}

#[test]
fn a_file_begins_with_everything_before_it_on_disk_and_nothing_after_it() {
    let world = World::new(POOL);
    let other = world.manage("other");
    world.fsync(&other);
    world.pwrite(&other, 0, b"some records", 0);
    let next = world.engine.next_lsn();
    let m = world.manage_as("wal", Begins::InLog, false);
    let slot = world.slot(&m);
    assert_eq!((slot.watermark(), slot.last_lsn()), (next - 1, next - 1));
    let entry = table::file(&world.pool, m.name.slot).expect("a table").expect("its entry");
    assert_eq!((entry.watermark, entry.generation), (next - 1, m.name.generation));
    assert!(!world.engine.is_left_over(&entry));

    world.pwrite(&m, 0, b"its first record", 0);
    assert_eq!(slot.last_lsn(), next, "in the segment that is open already");
    let content = std::fs::read(&m.path).expect("read");
    roll_back(&m, b"");
    let (report, _dir, _memory) = world.recover();
    assert_eq!(report.expect("a recovery").live, 2);
    assert!(std::fs::read(&m.path).expect("read") == content);
}

#[test]
fn a_slot_whose_lock_the_living_lost_gets_no_other_file() {
    let world = World::new(POOL);
    let [stuck, gone] = ["stuck", "gone"].map(|name| world.manage(name));
    let inside = world.slot(&stuck).enter(world.engine.shm(), world.who(0));
    world.engine.hold(world.who(0), stuck.name, || Ok(()));
    drop(inside);
    for m in [&stuck, &gone] {
        world.engine.forget(world.who(7), m.name.slot);
        assert!(!world.engine.knows(m.name));
    }
    let next = world.manage("next");
    assert_eq!(next.name.slot, gone.name.slot, "not the lower one");
}

/// Its slot gets another file while the daemon syncs it.
struct Replaced<'a> {
    world: &'a World,
    first: &'a Managed,
    then: Cell<Option<Managed>>,
}

impl Files for Replaced<'_> {
    fn descriptor(&mut self, slot: u32) -> std::io::Result<BorrowedFd<'_>> {
        let Self { world, first, then } = self;
        if slot == first.name.slot && world.engine.knows(first.name) {
            world.engine.forget(world.who(7), slot);
            let next = world.manage_as("next", Begins::InLog, false);
            assert_eq!(next.name.slot, slot);
            take_out(world, &next);
            world.pwrite(&next, 0, b"around the log, and on no disk", 0);
            then.set(Some(next));
        }
        Ok(first.file.as_fd())
    }
}

#[test]
fn regression_a_sync_of_a_slots_former_file_takes_no_other_one_into_the_log() {
    let world = World::new(POOL);
    let first = world.manage_as("first", Begins::InLog, false);
    take_out(&world, &first);
    let mut files = Replaced { world: &world, first: &first, then: Cell::default() };
    let round = Destager::new(&world.engine, world.who(7)).round(&mut files);
    let next = files.then.take().expect("the destager looked at it");
    assert_eq!(round.readmitted, 0);
    assert!(!world.is_tracked(&next) && world.fsync(&next), "real: nobody has synced it");
}

/// One that waits for a file's lock while the file loses its slot does nothing to whatever has the slot then.
#[test]
fn who_waited_for_a_file_that_is_gone_by_then_changes_nothing() {
    let world = World::new(POOL);
    let m = world.manage("wal");
    assert!(world.fsync(&m), "now it is in the log");
    let slot = world.slot(&m);
    let inside = slot.enter(world.engine.shm(), world.who(0)).alone().expect("nobody is inside");
    std::thread::scope(|threads| {
        threads.spawn(|| world.engine.hold(world.who(1), m.name, || Ok(())));
        // Long enough for it to wait.
        std::thread::sleep(std::time::Duration::from_millis(100));
        world.engine.forget(world.who(0), m.name.slot);
        drop(inside);
    });
    assert_eq!(slot.holds(), 0);
}
