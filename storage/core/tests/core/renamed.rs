//! A rename makes one fsync wait for the directory, and for nothing else: the file's records stay.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::common::{Calls, Managed, World, roll_back};
use seawall_core::file::{Begins, Flag};
use seawall_core::{Errno, Scope};

const POOL: u64 = 16 << 20;

/// A file in the log, with a record, on a file system of which the ways of names are known.
fn logged() -> (World, Managed) {
    let world = World::new(POOL);
    let m = world.manage_as("wal", Begins::Outside, true);
    assert!(world.fsync(&m), "the first one is real");
    world.pwrite(&m, 0, b"acknowledged", 0);
    (world, m)
}

fn rename(world: &World, m: &Managed) {
    world.engine.renamed(m.name);
    world.engine.renamed(m.name);
}

/// What a sync asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    Name,
    Real(Scope),
    NameThenReal(Scope),
}

/// A sync on a disk that takes everything. `by_directory`: what the front can do.
fn sync(world: &World, m: &Managed, scope: Scope, by_directory: bool) -> Asked {
    let asked = Cell::new(Asked::Nothing);
    let real = |scope| {
        let named = asked.get() == Asked::Name;
        asked.set(if named { Asked::NameThenReal(scope) } else { Asked::Real(scope) });
        Ok(())
    };
    let name = || {
        asked.set(Asked::Name);
        Ok(by_directory)
    };
    world.engine.sync_scope(world.who(0), m.name, scope, real, name).expect("a sync");
    asked.get()
}

// Holds: L7
#[test]
fn the_first_fsync_makes_the_name_durable_and_retires_nothing() {
    let (world, m) = logged();
    rename(&world, &m);
    assert_eq!(sync(&world, &m, Scope::Data, true), Asked::Nothing, "fdatasync is not about names");
    assert_eq!(sync(&world, &m, Scope::Whole, true), Asked::Name);
    assert_eq!(sync(&world, &m, Scope::Whole, true), Asked::Nothing);
    assert!(world.is_tracked(&m));
    roll_back(&m, b"older");
    let (recovered, _dir, _memory) = world.recover();
    assert_eq!(recovered.expect("a recovery").live, 1);
    assert_eq!(std::fs::read(&m.path).expect("read"), b"acknowledged");
}

// Holds: L7
#[test]
fn a_rename_during_the_sync_is_not_taken_for_done() {
    let (world, m) = logged();
    rename(&world, &m);
    let real = |_| -> Result<(), Errno> { panic!("not needed") };
    let meanwhile = || {
        assert_eq!(sync(&world, &m, Scope::Whole, true), Asked::Name, "it does not wait for ours");
        rename(&world, &m);
        Ok(true)
    };
    world.engine.sync_scope(world.who(1), m.name, Scope::Whole, real, meanwhile).expect("a sync");
    assert_eq!(sync(&world, &m, Scope::Whole, true), Asked::Name);
    assert_eq!(sync(&world, &m, Scope::Whole, true), Asked::Nothing);
}

#[test]
fn where_the_directory_cannot_be_synced_the_file_is() {
    let (world, m) = logged();
    rename(&world, &m);
    assert_eq!(sync(&world, &m, Scope::Whole, false), Asked::NameThenReal(Scope::Whole));
    assert_eq!(sync(&world, &m, Scope::Whole, true), Asked::Nothing, "that covered the name");
}

#[test]
fn on_other_file_systems_the_next_sync_of_either_kind_is_a_real_fsync() {
    let world = World::new(POOL);
    let m = world.manage("wal");
    world.fsync(&m);
    rename(&world, &m);
    assert_eq!(sync(&world, &m, Scope::Data, true), Asked::Real(Scope::Whole));
    assert_eq!(sync(&world, &m, Scope::Whole, true), Asked::Nothing);
}

/// It used to be a real fdatasync, and the fsync after it was absorbed.
#[test]
fn regression_attributes_are_not_left_to_fdatasync() {
    let (world, m) = logged();
    world.engine.disturb(m.name);
    assert_eq!(sync(&world, &m, Scope::Data, true), Asked::Real(Scope::Whole));
    assert_eq!(sync(&world, &m, Scope::Whole, true), Asked::Nothing);
}

#[test]
fn a_real_fdatasync_does_not_count_for_the_name() {
    let (world, m) = logged();
    world.engine.pass(world.who(0), m.name, || Ok(()), || ());
    rename(&world, &m);
    assert_eq!(sync(&world, &m, Scope::Data, true), Asked::Real(Scope::Data), "it is outside the log");
    assert!(world.is_tracked(&m));
    assert_eq!(sync(&world, &m, Scope::Whole, true), Asked::Name);
}

#[test]
fn a_directory_that_cannot_be_written_fails_the_file_for_good() {
    let (world, m) = logged();
    rename(&world, &m);
    let real = |_| -> Result<(), Errno> { panic!("retried into success") };
    let name = || Err(Errno::IO);
    assert_eq!(world.engine.sync_scope(world.who(0), m.name, Scope::Whole, real, name), Err(Errno::IO));
    assert!(world.engine.state(m.name).has(Flag::FAILED));
    let again = || -> Result<bool, Errno> { panic!("asked again") };
    assert_eq!(world.engine.sync_scope(world.who(0), m.name, Scope::Whole, real, again), Err(Errno::IO));
}

/// Below its root recovery finds the file whatever it is called; elsewhere its records must not outlive the name.
#[test]
fn a_file_that_was_moved_out_of_its_root_is_synced_itself() {
    let (world, m) = logged();
    let is_synced = |path: &Path| {
        world.engine.sync_directory(m.name, m.file.as_fd(), path.as_os_str().as_bytes()).expect("a disk")
    };
    let inside = world.dir.path().canonicalize().expect("a path");
    assert!(is_synced(&inside.join("wal")));
    std::fs::rename(&m.path, inside.join("new")).expect("renamed");
    assert!(is_synced(&inside.join("new")) && !is_synced(&inside.join("wal")));
    let outside = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let outside = outside.path().canonicalize().expect("a path").join("wal");
    std::fs::rename(inside.join("new"), &outside).expect("renamed");
    assert!(!is_synced(&outside));
}
