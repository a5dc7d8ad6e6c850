//! Eviction: a slot changes hands, and nothing of its former file is lost or comes back.

use std::os::fd::AsFd;

use crate::common::{Calls, Managed, World, roll_back};
use seawall_core::file::KeptOut::{Foreign, Frozen, GivenAway, Unguarded, Unlinked};
use seawall_core::{At, Errno};

const POOL: u64 = 16 << 20;

/// A tracked file with a live record.
fn written(world: &World, name: &str) -> Managed {
    let m = world.manage(name);
    assert!(world.fsync(&m), "real, and from now on it is tracked");
    world.pwrite(&m, 0, b"old", 0);
    m
}

fn evict(world: &World, m: &Managed) -> bool {
    world.engine.evict(world.who(7), m.name, || m.file.sync_data().map_err(|_| Errno::IO))
}

#[test]
fn an_evicted_file_is_on_disk_and_may_come_back() {
    let world = World::new(POOL);
    let first = written(&world, "a");
    assert!(evict(&world, &first));
    assert!(!world.engine.knows(first.name));
    // At once, not when the slot is used again: a thread that reads this, and then that the slot is used, must not be misled.
    let slot = world.engine.slot(first.name.slot).expect("the slot");
    assert_ne!(slot.file(), first.name);
    assert!(world.fsync(&first), "by its former name: real");

    let next = world.manage("b");
    assert_eq!(next.name.slot, first.name.slot, "the slot has another file");
    assert!(world.fsync(&next));
    world.pwrite(&next, 0, b"next", 0);
    let again = world.manage("a");
    assert!(world.fsync(&again));
    world.pwrite(&again, 0, b"new", 3);

    let content = std::fs::read(&again.path).expect("read");
    roll_back(&again, b"old");
    let (report, _dir, _memory) = world.recover();
    assert_eq!(report.expect("a recovery").live, 2, "nothing of before the eviction");
    assert_eq!(content, b"oldnew");
    assert_eq!(std::fs::read(&again.path).expect("read"), content);
    assert_eq!(std::fs::read(&next.path).expect("read"), b"next");
}

/// A descriptor that remembers the slot's former file must reach neither the log nor the present file's state.
#[test]
fn a_former_name_is_nobodys() {
    let world = World::new(POOL);
    let first = written(&world, "a");
    assert!(evict(&world, &first));
    let next = world.manage("b");
    assert!(world.fsync(&next), "tracked");
    let before = world.engine.next_lsn();
    let published = std::cell::Cell::new(false);
    let publish = || {
        published.set(true);
        Ok(3)
    };
    let data = [&b"xyz"[..]];
    let (fd, who) = (first.file.as_fd(), world.who(0));
    world.engine.write(who, first.name, fd, At::Offset(0), data.into_iter(), publish).expect("written");
    assert!(published.get());
    assert_eq!(world.engine.next_lsn(), before, "not logged for the other file");
    assert!(world.fsync(&first), "not absorbed by the other file's state");
}

#[test]
fn who_is_used_stays() {
    let world = World::new(POOL);
    let m = written(&world, "a");
    let inside = world.slot(&m).enter(world.engine.shm(), world.who(0)).alone().expect("nobody is inside");
    assert!(!evict(&world, &m), "somebody is inside");
    drop(inside);

    world.engine.hold(world.who(0), m.name, || m.file.sync_data().map_err(|_| Errno::IO));
    assert!(!evict(&world, &m), "a mapping may write it");
    world.engine.release(world.who(0), m.name);

    for why in [Foreign, Frozen, GivenAway, Unguarded, Unlinked] {
        world.engine.keep_out(m.name, why);
        assert!(!evict(&world, &m), "{why:?}");
        world.engine.let_back(m.name, why);
    }
    assert!(evict(&world, &m));

    let failed = written(&world, "b");
    world.engine.distrust(failed.name);
    assert!(!evict(&world, &failed), "a sync failed");

    let stuck = written(&world, "c");
    let inside = world.slot(&stuck).enter(world.engine.shm(), world.who(0));
    world.engine.hold(world.who(0), stuck.name, || Ok(()));
    drop(inside);
    assert!(!evict(&world, &stuck), "a signal handler mapped it");
}

#[test]
fn a_disk_that_refuses_keeps_the_records() {
    let world = World::new(POOL);
    let m = written(&world, "a");
    assert!(!world.engine.evict(world.who(7), m.name, || Err(Errno::IO)));
    assert!(world.engine.knows(m.name));
    assert!(!evict(&world, &m), "nor is it believed when it says yes afterwards");
    roll_back(&m, b"");
    let (report, _dir, _memory) = world.recover();
    assert_eq!(report.expect("a recovery").live, 1);
    assert_eq!(std::fs::read(&m.path).expect("read"), b"old");
}

#[test]
fn what_is_on_disk_goes_first_and_of_that_the_oldest() {
    let world = World::new(POOL);
    let [old, new, live] = ["old", "new", "live"].map(|name| written(&world, name));
    for m in [&old, &new] {
        world.engine.disturb(m.name);
        assert!(world.fsync(m), "real: retires");
    }
    let price = |m: &Managed| world.engine.eviction_price(world.slot(m)).expect("a price");
    assert!(price(&old) < price(&new) && price(&new) < price(&live));
    world.pwrite(&old, 0, b"again", 0);
    assert!(price(&live) < price(&old));
}
