//! Calls on names that the kernel refuses, and threads that meet at the same file: what the simulator found, each reduced to
//! the few steps that show it.

mod common;

use std::cell::Cell;
use std::ffi::CStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use common::World;
use common::directory::{self, attributes, handle, names};
use seawall_core::file::Stand;
use seawall_core::format::NameChange;
use seawall_core::naming::{self, Directory, How, Kind, Known};
use seawall_core::{Engine, Errno, FileRef, Owner, Place};

/// A directory as a front reaches it.
struct Front<'w> {
    world: &'w World,
    directory: &'w directory::Directory<'w>,
    stand: Option<Stand>,
    /// The disk refuses its next sync, as if the power went before it.
    fails: Cell<bool>,
}

impl<'w> Front<'w> {
    fn of(world: &'w World, directory: &'w directory::Directory<'w>) -> Self {
        Self { world, directory, stand: world.engine.stand(directory.name), fails: Cell::new(false) }
    }

    fn path(&self, name: &CStr) -> std::path::PathBuf {
        self.directory.at(std::ffi::OsStr::from_bytes(name.to_bytes()).to_str().expect("text"))
    }
}

impl Place for Front<'_> {
    fn changed_before(&self) -> u64 {
        self.directory.changed()
    }

    fn changed(&self) -> u64 {
        self.directory.changed()
    }

    fn sync(&self, with_files: bool) -> Result<(), Errno> {
        if self.fails.get() { Err(Errno::IO) } else { Place::sync(self.directory, with_files) }
    }

    fn check(&self) -> Result<(), Errno> {
        self.directory.check()
    }
}

impl Directory for Front<'_> {
    fn engine(&self) -> &Engine {
        &self.world.engine
    }

    fn who(&self) -> Owner {
        self.world.who(0)
    }

    fn reference(&self) -> FileRef {
        self.directory.name
    }

    fn inode(&self) -> (u64, u64) {
        inode(&self.path(c"."))
    }

    fn uid(&self) -> u32 {
        self.path(c".").metadata().expect("there").uid()
    }

    fn keeps(&self, _name: &CStr) -> bool {
        true
    }

    fn stand(&self) -> Option<Stand> {
        self.stand
    }

    fn at(&self, name: &CStr) -> Option<Known> {
        let path = self.path(name);
        let links = path.symlink_metadata().ok()?.nlink();
        let (attributes, handle) = (attributes(&path), Some(handle(&path)));
        Some(Known { kind: Kind::File, inode: inode(&path), links, attributes, handle })
    }

    fn with_content<R>(&self, name: &CStr, _known: &Known, op: impl FnOnce(&[u8]) -> R) -> Option<R> {
        Some(op(&fs::read(self.path(name)).ok()?))
    }
}

fn inode(path: &Path) -> (u64, u64) {
    let meta = path.metadata().expect("there");
    (meta.dev(), meta.ino())
}

fn made(directory: &directory::Directory<'_>, name: &str, content: &str) {
    fs::write(directory.make(name), content).expect("written");
    assert!(directory.sync(name));
}

fn refused(_: bool) -> Result<(), Errno> {
    Err(Errno::EXIST)
}

/// With a record for each of the two names, a power cut between them left the file at both, and the other one at none.
#[test]
fn a_rename_that_the_kernel_refuses_is_taken_back_by_one_record() {
    for how in [How::Plain, How::Exchange] {
        let world = World::new(16 << 20);
        let directory = directory::Directory::of(&world);
        made(&directory, "new", "of the new one");
        made(&directory, "old", "of the old one");
        let here = Front::of(&world, &directory);
        let before = world.engine.next_lsn();
        let source = here.at(c"new");
        let done = naming::moving_within(&here, ((c"new", source), c"old"), how, refused);
        assert_eq!((done, world.engine.next_lsn() - before), (Err(Errno::EXIST), 2), "{how:?}");
        for name in ["new", "old"] {
            fs::remove_file(directory.at(name)).expect("removed");
        }
        drop(directory);
        let (done, dir, _memory) = world.recover();
        done.expect("a recovery");
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).expect("read");
        assert_eq!([read("new"), read("old")], ["of the new one", "of the old one"], "{how:?}");
    }
}

/// The first directory to be synced vouched for the move, and the other one's records made it.
#[test]
fn a_move_that_the_kernel_refuses_is_undone_wherever_the_power_fails() {
    for lost in 0..2 {
        let world = World::new(16 << 20);
        let from = directory::Directory::below(&world, "tmp");
        let to = directory::Directory::below(&world, "new");
        made(&from, "mail", "dear reader");
        made(&to, "mail", "an older one");
        let fronts = [Front::of(&world, &from), Front::of(&world, &to)];
        fronts[lost].fails.set(true);
        let [source, target] = &fronts;
        let done = naming::moving_across((source, c"mail"), (target, c"mail"), How::Plain, refused);
        assert_eq!(done, Err(Errno::EXIST));
        drop((from, to));
        let (done, dir, _memory) = world.recover();
        done.expect("a recovery");
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).expect("read");
        assert_eq!([read("tmp/mail"), read("new/mail")], ["dear reader", "an older one"], "{lost}");
        assert_eq!(names(&dir.path().join("tmp")), ["mail"], "{lost}");
    }
}

/// Nobody waited for the thread that removed the file between the look at it and the entry, and its rename was logged.
#[test]
fn a_file_that_was_seen_before_the_entry_and_is_gone_by_then_does_not_move() {
    let world = World::new(16 << 20);
    let directory = directory::Directory::of(&world);
    made(&directory, "new", "first");
    let here = Front::of(&world, &directory);
    let source = here.at(c"new");
    directory.remove("new");
    let before = world.engine.next_lsn();
    let done = naming::moving_within(&here, ((c"new", source), c"old"), How::Plain, refused);
    assert_eq!((done, world.engine.next_lsn()), (Err(Errno::EXIST), before));
    drop(directory);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

/// The sync began before the other thread wrote and captured the file: the disk lacks what was captured.
#[test]
fn what_was_captured_since_a_real_sync_began_is_synced_once_more() {
    let world = World::new(16 << 20);
    let directory = directory::Directory::of(&world);
    let path = directory.make("file");
    let since = world.engine.next_lsn();
    fs::write(&path, "more").expect("written");
    assert!(directory.sync("file"));
    let captured = world.engine.captured(inode(&path)).expect("captured");
    let turn = directory.turn();
    assert!(!turn.settle(&captured, inode(&path), since, || Err(Errno::IO)));
    assert!(world.engine.captured(inode(&path)).is_some(), "the log has it still");
    let synced = Cell::new(false);
    let again = || {
        synced.set(true);
        Ok(())
    };
    assert!(turn.settle(&captured, inode(&path), since, again) && synced.get());
    turn.finish();
}

/// Whoever wrote it meanwhile and synced it for real saw nobody, and the record brought back what was before.
#[test]
fn a_file_is_announced_before_it_is_read_for_a_record() {
    let world = World::new(16 << 20);
    let directory = directory::Directory::of(&world);
    made(&directory, "file", "first");
    let path = directory.at("file");
    let (file, id) = (handle(&path), inode(&path));
    let before = world.engine.captured(id).expect("captured");
    let turn = directory.turn();
    let is_captured = turn.capture(id, &file, |_| {
        assert_eq!(world.engine.being_captured(id), Some(directory.name.slot));
        None
    });
    assert!(!is_captured);
    assert_eq!(world.engine.captured(id), Some(before), "its former record counts as before");
    let change = NameChange::Content { name: b"file", file, attributes: attributes(&path), data: b"second" };
    assert!(turn.capture(id, &file, |record| record(&change)));
    assert!(world.engine.captured(id).is_some_and(|now| now.lsn > before.lsn));
    turn.finish();
}
