//! Calls on names that the kernel refuses, and threads that meet at the same file: what the simulator found, each reduced to
//! the few steps that show it.

use std::cell::Cell;
use std::fs;

use crate::common::World;
use crate::common::directory::{self, attributes, handle, names};
use crate::common::front::{Front, inode};
use seawall_core::Errno;
use seawall_core::file::Flag;
use seawall_core::file::captured::Capture;
use seawall_core::format::NameChange;
use seawall_core::naming::{self, Directory, How, Making};

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

/// Else the call that is to open it makes one, and no record tells of that.
#[test]
fn a_file_that_was_seen_and_is_gone_is_made_with_a_record() {
    let world = World::new(16 << 20);
    let directory = directory::Directory::of(&world);
    made(&directory, "file", "first");
    let (mut asked, path) = (Vec::new(), directory.at("file"));
    let open = |how| {
        if asked.is_empty() {
            directory.remove("file");
        }
        asked.push(how);
        let made = fs::File::options().write(true).create(how != Making::Opens).open(&path);
        made.map(drop).map_err(|error| Errno::from_io_error(&error).expect("the kernel's"))
    };
    naming::making(&Front::of(&world, &directory), c"file", open).expect("no error");
    assert_eq!(asked, [Making::Opens, Making::New]);
    assert!(world.engine.state(directory.name).has(Flag::TRACKED) && !directory.fsync());
    fs::remove_file(&path).expect("the disk has not got it");
    drop(directory);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(fs::read_to_string(dir.path().join("file")).expect("read"), "");
}

/// As libc's fopen does: no record tells of it, and the next change would hide that.
#[test]
fn a_file_that_takes_the_place_of_one_that_was_seen_takes_its_directory_out_of_the_log() {
    for is_removed in [true, false] {
        let world = World::new(16 << 20);
        let directory = directory::Directory::of(&world);
        made(&directory, "file", "first");
        let open = |_| {
            if is_removed {
                directory.remove("file");
                // Another thread is inside, and takes the change for its own.
                let turn = directory.turn();
                fs::write(directory.at("file"), "another").expect("made");
                turn.finish();
            }
            Ok(())
        };
        naming::making(&Front::of(&world, &directory), c"file", open).expect("no error");
        let is_in_log = world.engine.state(directory.name).has(Flag::TRACKED);
        assert_eq!((is_in_log, directory.fsync()), (!is_removed, is_removed));
    }
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
        assert_eq!(world.engine.capture_of(id), Capture::UnderWay(directory.name.slot));
        None
    });
    assert!(!is_captured);
    assert_eq!(world.engine.captured(id), Some(before), "its former record counts as before");
    let change = NameChange::Content { name: b"file", file, attributes: attributes(&path), data: b"second" };
    assert!(turn.capture(id, &file, |record| record(&change)));
    assert!(world.engine.captured(id).is_some_and(|now| now.lsn > before.lsn));
    turn.finish();
}

/// Its records come back after a power cut, and whatever changed after them would be mixed with what they say: of a file
/// that took another one's place neither would be there.
#[test]
fn names_do_not_change_in_a_directory_whose_records_could_not_be_retired() {
    let world = World::new(16 << 20);
    let directory = directory::Directory::of(&world);
    made(&directory, "new", "of the new one");
    made(&directory, "old", "of the old one");
    let here = Front::of(&world, &directory);
    here.fails.set(true);
    let turn = naming::enter(&here);
    turn.leave();
    assert_eq!(turn.allowed(), Err(Errno::IO));
    turn.finish();
    here.fails.set(false);
    let never = |_: bool| -> Result<(), Errno> { panic!("the kernel is not asked") };
    let source = here.at(c"new");
    let refused = [
        naming::moving_within(&here, ((c"new", source), c"old"), How::Plain, never),
        naming::removing(&here, c"new", never),
        naming::making(&here, c"another", |_| never(false)),
        naming::making_new(&here, c"another", || never(false)),
        naming::linking_within(&here, (c"new", c"another"), || never(false)),
        naming::other(&here, || never(false)),
    ];
    assert_eq!(refused, [Err(Errno::IO); 6]);
    for name in ["new", "old"] {
        fs::remove_file(directory.at(name)).expect("removed");
    }
    drop(directory);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(dir.path()), ["new", "old"]);
}

/// A thread that had looked at the directory before it entered the log changed it, while a record was being made.
#[test]
fn what_a_refused_removal_finds_gone_does_not_come_back_by_its_record() {
    let world = World::new(16 << 20);
    let directory = directory::Directory::of(&world);
    made(&directory, "file", "first");
    let here = Front::of(&world, &directory);
    let done = naming::removing(&here, c"file", |_| -> Result<(), Errno> {
        fs::remove_file(directory.at("file")).expect("removed");
        Err(Errno::NOENT)
    });
    assert_eq!(
        (done, directory.synced.borrow().len()),
        (Err(Errno::NOENT), 1),
        "the directory has left the log"
    );
    drop(directory);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

/// The rename was made between the two steps of a thread that had just made the file where it had been, and that made a record of
/// it there: after a power cut the file was at both places.
#[test]
fn a_directory_does_not_enter_the_log_beside_a_change_that_has_not_found_it() {
    let world = World::new(16 << 20);
    let directory = directory::Directory::of(&world);
    let is_in_log = |name| world.engine.state(name).has(Flag::TRACKED);
    let beside = |what: &dyn Fn()| {
        let known = world.engine.directories();
        world.engine.outside(Some(world.who(1)), known, std::iter::empty(), || (), what);
    };
    naming::leaving(&Front::of(&world, &directory));
    beside(&|| {
        directory.fsync();
        assert!(!is_in_log(directory.name), "by a sync");
    });
    directory.fsync();
    assert!(is_in_log(directory.name), "nothing is under way any more");
    beside(&|| assert!(!is_in_log(directory.unborn("part", &["rows"]).name), "a new one"));
}

/// It was not there yet when the call looked for it.
#[test]
fn a_directory_that_entered_meanwhile_is_looked_for_before_the_call() {
    let world = World::new(16 << 20);
    let known = world.engine.directories();
    let directory = directory::Directory::of(&world);
    let leave = || naming::leaving(&Front::of(&world, &directory));
    let is_in_log = || world.engine.state(directory.name).has(Flag::TRACKED);
    assert!(is_in_log());
    world.engine.outside(Some(world.who(1)), known, std::iter::empty(), leave, || assert!(!is_in_log()));
}
