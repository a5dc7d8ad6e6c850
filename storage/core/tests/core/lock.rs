//! The file lock, when several wait for it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::common::World;
use seawall_core::format::{FOREVER, watermark};
use seawall_media::sim;

/// Whoever lets go wakes one sleeper and forgets the others. If that one did not remember them they would sleep their
/// two milliseconds out, one behind the other.
#[test]
fn who_slept_for_it_remembers_that_others_may_sleep() {
    let world = World::new(16 << 20);
    let managed = world.manage("a");
    let slot = world.slot(&managed);
    let enter_as = |thread| {
        let entered = slot.enter(world.engine.shm(), world.who(thread)).alone();
        entered.expect("another thread is inside")
    };
    let inside = enter_as(0);
    std::thread::scope(|threads| {
        let sleeper = threads.spawn(|| {
            let _inside = enter_as(1);
            slot.sleepers()
        });
        while slot.sleepers() == 0 {
            std::thread::yield_now();
        }
        drop(inside);
        assert_ne!(sleeper.join().expect("no panic"), 0, "nobody will be woken");
    });
    assert_eq!(slot.sleepers(), 0, "nobody sleeps");
    drop(enter_as(2));
    assert_eq!(slot.sleepers(), 0, "who did not sleep knows of nobody");
}

/// Is stopped at its first fence in a cell.
struct Stopped {
    is_there: Cell<Option<Sender<()>>>,
    goes_on: Receiver<()>,
}

impl sim::Observer for Stopped {
    fn fenced(&self, site: sim::Site) {
        if site.file().ends_with("cell.rs")
            && let Some(is_there) = self.is_there.take()
        {
            is_there.send(()).expect("somebody waits");
            self.goes_on.recv().expect("it goes on");
        }
    }
}

/// Takes everybody who is waited for as one that is stopped.
struct Impatient;

impl sim::Observer for Impatient {
    fn halts(&self) -> Option<bool> {
        Some(true)
    }
}

/// One is stopped while it raises the watermark, and loses the file's lock. The next holder raises the watermark for good,
/// and the first one must not put its lower value over that.
#[test]
fn who_lost_the_lock_while_it_raised_the_watermark_does_not_lower_it() {
    let world = World::new(16 << 20);
    let m = world.manage("a");
    assert!(world.fsync(&m), "now it is in the log");
    world.pwrite(&m, 0, b"one", 0);
    let (is_there, there) = channel();
    let (go_on, goes_on) = channel();
    std::thread::scope(|threads| {
        let (world, m) = (&world, &m);
        threads.spawn(move || {
            let is_there = Cell::new(Some(is_there));
            sim::install(Some(Rc::new(Stopped { is_there, goes_on })));
            world.destage(m);
        });
        there.recv().expect("it raises the watermark");
        threads.spawn(move || {
            sim::install(Some(Rc::new(Impatient)));
            world.pwrite(m, 1, b"two", 0);
        });
        // Long enough for one that does not wait.
        std::thread::sleep(Duration::from_millis(300));
        go_on.send(()).expect("it stands there");
    });
    assert_eq!(watermark(m.name.slot).load(&world.pool.region), Some(FOREVER));
}
