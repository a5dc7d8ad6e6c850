//! A directory in the log: its names, and small files in it, come back after a power cut.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::common::World;
use crate::common::directory::{Directory, attributes, handle, names};
use seawall_core::destage::{Destager, Files};
use seawall_core::file::Flag;
use seawall_core::file::captured::Captured;
use seawall_core::format::{Handle, NameChange};
use seawall_core::pool;
use seawall_core::recover::{Mode, Options, RecoverError, recover};

/// A place outside the directory where a file stays that the disk still has.
fn aside(world: &World) -> PathBuf {
    world.dir.path().with_extension("aside")
}

#[test]
fn what_is_made_and_synced_waits_for_no_disk_and_is_made_again() {
    let world = World::new(16 << 20);
    let directory = Directory::of(&world);
    let path = directory.make("new");
    fs::write(&path, "all of it").expect("written");
    fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("set");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 5);
    File::options().write(true).open(&path).expect("open").set_modified(long_ago).expect("set");
    assert!(directory.sync("new") && !directory.fsync());
    assert!(directory.synced.borrow().is_empty());
    // The power goes before the disk has any of it.
    fs::remove_file(&path).expect("removed");
    drop(directory);
    let (done, dir, _memory) = world.recover();
    let report = done.expect("a recovery");
    assert_eq!((report.live, report.bytes), (2, 9));
    let path = dir.path().join("new");
    assert_eq!(fs::read_to_string(&path).expect("read"), "all of it");
    let meta = path.metadata().expect("there");
    assert_eq!((meta.mode() & 0o7777, meta.nlink()), (0o640, 1));
    assert_eq!(meta.modified().expect("a time"), long_ago);
    assert_eq!(names(dir.path()), ["new"]);
    let marks = rustix::fs::listxattr(&path, &mut [0_u8; 256][..]).expect("listed");
    assert_eq!(marks, 0, "what it stood for is forgotten");
}

/// Write a file, sync it, rename it over another, sync the directory.
#[test]
fn a_file_that_replaced_another_is_there_as_a_whole_whatever_the_disk_has_of_it() {
    for has_reached in 0..3 {
        let world = World::new(16 << 20);
        let directory = Directory::of(&world);
        let kept = aside(&world);
        fs::write(directory.at("store"), "old").expect("written");
        directory.fsync();
        fs::hard_link(directory.at("store"), &kept).expect("linked");
        directory.fsync();
        directory.make("store.tmp");
        fs::write(directory.at("store.tmp"), "new").expect("written");
        fs::set_permissions(directory.at("store.tmp"), Permissions::from_mode(0o640)).expect("set");
        assert!(directory.sync("store.tmp"));
        directory.rename("store.tmp", "store");
        assert!(!directory.fsync());
        match has_reached {
            // Nothing.
            0 => fs::rename(&kept, directory.at("store")).expect("renamed"),
            // The new file, empty.
            1 => {
                fs::rename(directory.at("store"), directory.at("store.tmp")).expect("renamed");
                fs::write(directory.at("store.tmp"), "").expect("emptied");
                fs::rename(&kept, directory.at("store")).expect("renamed");
            }
            // All of it but the bytes and the mode.
            _ => {
                fs::write(directory.at("store"), "").expect("emptied");
                fs::set_permissions(directory.at("store"), Permissions::from_mode(0o600)).expect("set");
            }
        }
        drop(directory);
        let (done, dir, _memory) = world.recover();
        done.expect("a recovery");
        assert_eq!(fs::read_to_string(dir.path().join("store")).expect("read"), "new", "{has_reached}");
        assert_eq!(names(dir.path()), ["store"], "{has_reached}");
        let meta = dir.path().join("store").metadata().expect("there");
        assert_eq!((meta.nlink(), meta.mode() & 0o777), (1, 0o640), "{has_reached}");
        let _ = fs::remove_file(kept);
    }
}

#[test]
fn what_was_removed_does_not_come_back() {
    let world = World::new(16 << 20);
    let directory = Directory::of(&world);
    let kept = aside(&world);
    directory.make("gone");
    fs::write(directory.at("gone"), "some").expect("written");
    assert!(directory.sync("gone"));
    fs::hard_link(directory.at("gone"), &kept).expect("linked");
    // The file's other name is nobody's change of the directory.
    directory.remove("gone");
    assert!(!directory.fsync());
    fs::rename(&kept, directory.at("gone")).expect("renamed");
    drop(directory);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert!(names(dir.path()).is_empty());
}

#[test]
fn two_names_that_were_exchanged_by_way_of_a_third_are_so_again() {
    let world = World::new(16 << 20);
    let directory = Directory::of(&world);
    for name in ["a", "b"] {
        fs::write(directory.at(name), name).expect("written");
    }
    directory.fsync();
    directory.rename("a", "c");
    directory.rename("b", "a");
    directory.rename("c", "b");
    for (name, to) in [("b", "c"), ("a", "b"), ("c", "a")] {
        fs::rename(directory.at(name), directory.at(to)).expect("renamed back");
    }
    drop(directory);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    let is = |name: &str| fs::read_to_string(dir.path().join(name)).expect("read");
    assert_eq!((is("a").as_str(), is("b").as_str()), ("b", "a"));
    assert_eq!(names(dir.path()), ["a", "b"]);
}

/// By a program without Seawall, or by a call of libc's own.
// Holds: L25
#[test]
fn what_is_done_unseen_takes_the_directory_out_of_the_log() {
    let world = World::new(16 << 20);
    let directory = Directory::of(&world);
    directory.make("seen");
    assert!(!directory.fsync());
    std::thread::sleep(Duration::from_millis(20));
    fs::write(directory.at("unseen"), "").expect("made");
    assert!(directory.fsync(), "this sync has something to do");
    assert!(!directory.fsync());
    std::thread::sleep(Duration::from_millis(20));
    fs::rename(directory.at("seen"), directory.at("moved")).expect("renamed");
    let turn = directory.turn();
    assert!(!turn.is_in_log(), "its records would not be in order with that change");
    turn.finish();
    assert!(directory.fsync() && world.engine.state(directory.name).has(Flag::TRACKED));
}

/// What a real sync covers is what was there when it began.
#[test]
fn what_is_made_unseen_during_a_sync_has_to_be_synced_again() {
    let world = World::new(16 << 20);
    let directory = Directory::of(&world);
    let turn = directory.turn();
    turn.leave();
    turn.finish();
    directory.meanwhile.replace(Some(directory.at("meanwhile")));
    assert!(directory.fsync() && directory.fsync() && !directory.fsync());
}

/// The file at hand must not get back what it had when it was captured.
#[test]
fn a_file_that_was_synced_for_real_keeps_what_it_has() {
    let world = World::new(16 << 20);
    let directory = Directory::of(&world);
    let path = directory.make("file");
    fs::write(&path, "first").expect("written");
    assert!(directory.sync("file"));
    let meta = path.metadata().expect("there");
    let captured = world.engine.captured((meta.dev(), meta.ino())).expect("it is in the log as a whole");
    assert_eq!(captured.directory, directory.name);
    fs::write(&path, "second").expect("written");
    let turn = directory.turn();
    let since = world.engine.next_lsn();
    assert!(turn.settle(&captured, (meta.dev(), meta.ino()), since, || unreachable!("it is on the disk")));
    turn.finish();
    assert!(world.engine.captured((meta.dev(), meta.ino())).is_none(), "once is enough");
    drop(directory);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(fs::read_to_string(dir.path().join("file")).expect("read"), "second");
}

struct Daemon<'d, 'w> {
    directory: &'d Directory<'w>,
    files: Vec<Handle>,
}

impl Files for Daemon<'_, '_> {
    fn descriptor(&mut self, _slot: u32) -> std::io::Result<std::os::fd::BorrowedFd<'_>> {
        Ok(self.directory.file.as_fd())
    }

    fn sync_directory(&mut self, _slot: u32, files: &[Captured]) -> std::io::Result<()> {
        self.files.extend(files.iter().map(|captured| captured.handle));
        Ok(())
    }
}

#[test]
fn destaging_syncs_what_was_captured_and_then_nothing_of_it_is_live() {
    let world = World::new(16 << 20);
    let directory = Directory::of(&world);
    for name in ["a", "b"] {
        fs::write(directory.make(name), name).expect("written");
        assert!(directory.sync(name));
    }
    let mut daemon = Daemon { directory: &directory, files: Vec::new() };
    let round = Destager::new(&world.engine, world.who(7)).round(&mut daemon);
    assert_eq!((round.synced, round.dirty), (1, 0));
    let mut expected = ["a", "b"].map(|name| handle(&directory.at(name))).to_vec();
    daemon.files.sort();
    expected.sort();
    assert_eq!(daemon.files, expected);
    assert!(!world.engine.has_live_content(directory.name));
    let meta = directory.at("a").metadata().expect("there");
    assert!(world.engine.captured((meta.dev(), meta.ino())).is_none());
    assert!(!directory.fsync(), "it stays in the log");
    // Nothing of it comes back.
    fs::remove_file(directory.at("a")).expect("removed");
    drop(directory);
    let (done, dir, _memory) = world.recover();
    assert_eq!(done.expect("a recovery").live, 0);
    assert_eq!(names(dir.path()), ["b"]);
}

#[test]
fn whoever_dies_in_a_change_leaves_what_the_disk_has() {
    let world = World::new(16 << 20);
    let directory = Directory::of(&world);
    fs::write(directory.at("stays"), "it").expect("written");
    directory.fsync();
    let dead = world.dead();
    let turn = world.engine.enter_directory(dead, directory.name, &directory);
    let file = handle(&directory.at("stays"));
    assert!(turn.log(&NameChange::Gone { name: b"stays", file, has_others: false }));
    std::mem::forget(turn);
    // Another process comes: the record must not come back after it has seen the file.
    directory.turn().finish();
    assert!(!world.engine.is_dirty(directory.name));
    drop(directory);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(dir.path()), ["stays"]);
}

// Holds: L25
#[test]
fn what_somebody_else_put_in_the_place_of_a_file_is_not_replaced_without_a_word() {
    let world = World::new(16 << 20);
    let directory = Directory::of(&world);
    fs::write(directory.make("file"), "mine").expect("written");
    assert!(directory.sync("file"));
    fs::remove_file(directory.at("file")).expect("removed");
    fs::write(directory.at("other"), "theirs").expect("written");
    fs::rename(directory.at("other"), directory.at("file")).expect("renamed");
    drop(directory);
    let World { dir, memory, pool, engine, .. } = world;
    let path = pool.path.clone();
    drop((pool, engine));
    let again = |accept_loss| {
        let pool = pool::open(&path).expect("open");
        recover(&pool, Options { mode: Mode::Replay, accept_loss })
    };
    let refused = again(false).expect_err("somebody else's file is there");
    assert!(matches!(refused, RecoverError::Unresolved(_)), "{refused}");
    assert!(refused.to_string().contains("file is not the file that the log expects there"), "{refused}");
    let report = again(true).expect("an operator says so");
    assert_eq!(report.given_up.len(), 1);
    assert_eq!(fs::read_to_string(dir.path().join("file")).expect("read"), "theirs");
    drop(memory);
}

/// In a signal handler that interrupted a change of names nothing can be settled: the caller has to know.
#[test]
fn a_thread_that_is_inside_already_does_not_settle_a_file() {
    let world = World::new(16 << 20);
    let directory = Directory::of(&world);
    let path = directory.make("file");
    assert!(directory.sync("file"));
    let meta = path.metadata().expect("there");
    let inode = (meta.dev(), meta.ino());
    let captured = world.engine.captured(inode).expect("it is in the log as a whole");
    let outer = directory.turn();
    let nested = directory.turn();
    let since = world.engine.next_lsn();
    assert!(!nested.settle(&captured, inode, since, || Ok(())) && world.engine.captured(inode).is_some());
    nested.finish();
    assert!(outer.settle(&captured, inode, since, || Ok(())));
    outer.finish();
    assert!(directory.fsync(), "what was done inside may not be in the log");
}

/// It would be there twice.
// Holds: L25
#[test]
fn a_file_that_somebody_else_moved_is_not_made_again() {
    let world = World::new(16 << 20);
    let directory = Directory::of(&world);
    fs::write(directory.make("file"), "mine").expect("written");
    assert!(directory.sync("file"));
    fs::rename(directory.at("file"), directory.at("moved")).expect("renamed");
    drop(directory);
    let (done, dir, _memory) = world.recover();
    let refused = done.expect_err("it has another name").to_string();
    assert!(refused.contains("file was moved to moved without Seawall"), "{refused}");
    assert_eq!(names(dir.path()), ["moved"]);
}

/// The name of a file may be any bytes.
#[test]
fn names_need_not_be_text() {
    let world = World::new(16 << 20);
    let directory = Directory::of(&world);
    let name = [0xff, b' ', b'\n', 0x80];
    let path = world.dir.path().join(OsStr::from_bytes(&name));
    let turn = directory.turn();
    fs::write(&path, "").expect("made");
    let (file, attributes) = (handle(&path), attributes(&path));
    assert!(turn.log(&NameChange::Made { name: &name, file, attributes }));
    turn.finish();
    fs::remove_file(&path).expect("removed");
    drop(directory);
    let (done, _dir, _memory) = world.recover();
    done.expect("a recovery");
    assert!(path.exists());
}
