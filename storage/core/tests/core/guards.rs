//! Guards move, and calls act on names that they take: never both at once.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use crate::common::World;

// Holds: P5
#[test]
fn no_guard_moves_while_a_call_acts_and_none_acts_where_one_has_moved() {
    let world = World::new(16 << 20);
    let (is_up, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    world.engine.shm().header().daemon_pid().store(std::process::id(), SeqCst);
    let guards = world.engine.guards();
    let acts = |client: usize| {
        let (mut acted, mut not) = (0, 0);
        while !is_over.load(Relaxed) {
            let Some(since) = guards.at_rest() else { continue };
            let was_up = is_up.load(SeqCst);
            match guards.stand_still(world.who(client), since) {
                None => not += 1,
                Some(_still) => {
                    (0..20).for_each(|_| assert_eq!(is_up.load(SeqCst), was_up, "it is where it was found"));
                    acted += 1;
                }
            }
        }
        (acted, not)
    };
    std::thread::scope(|scope| {
        let calls: Vec<_> = [3, 4].map(|client| scope.spawn(move || acts(client))).into();
        for _ in 0..2000 {
            let moving = guards.moving().expect("nobody acts for long");
            assert_eq!(guards.at_rest(), None);
            is_up.store(!is_up.load(SeqCst), SeqCst);
            drop(moving);
            std::thread::sleep(Duration::from_micros(20));
        }
        is_over.store(true, Relaxed);
        let sums = calls.into_iter().map(|call| call.join().expect("no panic"));
        let (acted, not) = sums.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert!(acted > 100, "{acted} calls acted, {not} did not");
    });
}

#[test]
fn of_a_process_that_died_nothing_counts_and_one_that_is_stopped_is_named() {
    let world = World::new(16 << 20);
    let guards = world.engine.guards();
    let since = guards.at_rest().expect("none moves");
    std::mem::forget(guards.stand_still(world.dead(), since).expect("none has moved"));
    drop(guards.moving().expect("it is dead"));
    assert!(guards.stand_still(world.who(3), since).is_none(), "one has moved");
    let still = guards.stand_still(world.who(3), guards.moves()).expect("none has moved since");
    let begin = Instant::now();
    let acting = guards.moving().err().expect("it acts");
    assert!(begin.elapsed() >= Duration::from_secs(2));
    assert_eq!(acting.pid, std::process::id());
    assert!(guards.at_rest().is_some(), "it was given up");
    drop(still);
    drop(guards.moving().expect("nobody acts"));
}

/// A daemon died over a move: until it has a successor none moves, and then it is another move.
#[test]
fn a_move_that_was_left_is_over() {
    let world = World::new(16 << 20);
    let guards = world.engine.guards();
    let daemon = world.engine.shm().header().daemon_pid();
    daemon.store(std::process::id(), SeqCst);
    std::mem::forget(guards.moving().expect("nobody acts"));
    assert_eq!(guards.at_rest(), None, "the daemon lives");
    daemon.store(0, SeqCst);
    let since = guards.at_rest().expect("nobody will end it");
    drop(guards.stand_still(world.who(3), since).expect("none moves"));
    let moving = guards.moving().expect("nobody acts");
    assert!(guards.stand_still(world.who(3), since).is_none(), "one moves");
    drop(moving);
    assert!(guards.moves().is_multiple_of(2));
}
