//! Waiting for a daemon that is away: bounded, in vain once for each, and anew after the next.

use std::cell::Cell;
use std::sync::atomic::Ordering::SeqCst;

use crate::common::World;
use seawall_core::patience::Patience;

#[test]
fn a_daemon_that_does_not_come_is_waited_for_once() {
    let world = World::new(16 << 20);
    let (patience, now, asked) = (Patience::new(), Cell::new(0), Cell::new(0));
    let insist = |answer_at: u32| {
        asked.set(0);
        let ask = || {
            asked.set(asked.get() + 1);
            (asked.get() == answer_at).then_some("here")
        };
        patience.insist(&world.engine, || now.get(), |ns| now.set(now.get() + ns), ask)
    };
    assert_eq!((insist(3), asked.get()), (Some("here"), 3));
    assert_eq!((insist(u32::MAX), asked.get(), now.get()), (None, 100, 5_150_000_000), "five seconds");
    assert_eq!((insist(1), asked.get()), (None, 0), "not once more");
    world.engine.shm().header().daemon_epoch().fetch_add(1, SeqCst);
    assert_eq!((insist(2), asked.get()), (Some("here"), 2), "another daemon came, and went");
}
