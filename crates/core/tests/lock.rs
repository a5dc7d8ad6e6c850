//! The file lock, when several wait for it.

mod common;

use common::World;

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
