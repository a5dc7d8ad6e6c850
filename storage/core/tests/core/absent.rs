//! A file that its database removes and makes again: its removal is a record.

use crate::common;
use crate::common::{Managed, World};
use seawall_core::file::{Flag, KeptOut};

/// A file in the log with something in it.
fn journal(world: &World) -> Managed {
    let m = world.manage("a.db-journal.seawall");
    world.fsync(&m);
    world.pwrite(&m, 0, b"before the change", 0);
    m
}

fn is_empty(m: &Managed) -> bool {
    m.file.metadata().expect("its size").len() == 0
}

fn vanishes(world: &World, m: &Managed) -> bool {
    world.engine.vanish(world.who(0), m.name, || is_empty(m))
}

#[test]
fn an_emptied_file_is_absent_until_it_is_made_again_and_that_once() {
    let world = World::new(16 << 20);
    let m = journal(&world);
    assert!(!vanishes(&world, &m), "it has bytes");
    assert!(!world.engine.appear(world.who(0), m.name), "it is there");
    world.truncate(&m, 0);
    assert!(vanishes(&world, &m) && world.engine.is_absent(m.name));
    assert!(!world.fsync(&m), "nothing is left to do");
    assert!(world.engine.appear(world.who(1), m.name) && !world.engine.is_absent(m.name));
    assert!(!world.engine.appear(world.who(0), m.name), "one of two made it");
    world.pwrite(&m, 0, b"the next", 0);
    assert!(!world.fsync(&m) && world.is_tracked(&m));
}

/// Its removal would be nowhere.
#[test]
fn what_is_not_in_the_log_does_not_vanish() {
    let world = World::new(16 << 20);
    let m = world.manage("new");
    assert!(!vanishes(&world, &m), "it was never synced");
    world.fsync(&m);
    world.engine.disturb(m.name);
    assert!(!vanishes(&world, &m), "its next sync is real");
    world.fsync(&m);
    world.engine.keep_out(m.name, KeptOut::Foreign);
    assert!(!vanishes(&world, &m), "somebody without Seawall has it");
    world.engine.let_back(m.name, KeptOut::Foreign);
    assert!(vanishes(&world, &m));
}

/// The daemon takes it away where others would see it, while its database is about to make it again.
#[test]
fn one_that_was_removed_for_good_is_not_made_again() {
    let world = World::new(16 << 20);
    let m = journal(&world);
    world.truncate(&m, 0);
    assert!(vanishes(&world, &m));
    world.engine.take_out(world.who(7), m.name, || Ok(())).unlinked();
    assert!(!world.engine.appear(world.who(0), m.name));
    assert!(world.engine.state(m.name).has(Flag::UNLINKED));
}

/// What it had before must not undo what its removal confirmed.
#[test]
fn after_a_crash_it_is_there_and_empty() {
    let world = World::new(16 << 20);
    let m = journal(&world);
    world.truncate(&m, 0);
    assert!(vanishes(&world, &m));
    common::roll_back(&m, b"before the change");
    let file = m.file.try_clone().expect("a descriptor");
    drop(m);
    let (done, _dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(file.metadata().expect("its size").len(), 0);
}
