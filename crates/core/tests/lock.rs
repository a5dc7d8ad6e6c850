//! The file lock, when several wait for it.

mod common;

use std::sync::atomic::Ordering::SeqCst;

use common::World;
use seawall_core::lock::{Entry, enter};

/// Whoever lets go wakes one sleeper and forgets the others. If that one did not remember them they would sleep their
/// two milliseconds out, one behind the other.
#[test]
fn who_slept_for_it_remembers_that_others_may_sleep() {
    let world = World::new(16 << 20);
    let managed = world.manage("a");
    let file = world.engine.shm().file(managed.name.slot).expect("the slot");
    let enter_as = |thread| match enter(world.engine.shm(), file, world.who(thread)) {
        Entry::Alone(guard) => guard,
        Entry::Nested => panic!("another thread is inside"),
    };
    let inside = enter_as(0);
    std::thread::scope(|threads| {
        let sleeper = threads.spawn(|| {
            let _inside = enter_as(1);
            file.waiters().load(SeqCst)
        });
        while file.waiters().load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        drop(inside);
        assert_ne!(sleeper.join().expect("no panic"), 0, "nobody will be woken");
    });
    assert_eq!(file.waiters().load(SeqCst), 0, "nobody sleeps");
    drop(enter_as(2));
    assert_eq!(file.waiters().load(SeqCst), 0, "who did not sleep knows of nobody");
}
