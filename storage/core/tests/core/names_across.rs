//! Files that move between directories in the log: both come back as one of the states that were, whatever the disk has.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::rc::Rc;

use crate::common::World;
use crate::common::directory::{Directory, attributes, handle, names};
use crate::common::front::Front;
use seawall_core::file::Flag;
use seawall_core::format::{Across, NameChange};
use seawall_core::naming::{self, Directory as _, How};
use seawall_core::{Errno, Turn};
use seawall_media::sim;

/// What the disk has when the power goes.
#[derive(Clone, Copy, Debug)]
enum Has {
    Nothing,
    /// The file, empty, where it was made.
    Made,
    Moved,
}

fn inode(path: &Path) -> (u64, u64) {
    let meta = path.metadata().expect("there");
    (meta.dev(), meta.ino())
}

/// All that a front does when a captured file moves, but for the kernel's call.
fn carried(from: &Directory<'_>, to: &Directory<'_>, name: &str, world: &World) {
    let (source, target) = (from.turn(), to.turn());
    carry(from, (&source, &target), name, world);
    let file = handle(&from.at(name));
    assert!(source.log_move(&target, (name.as_bytes(), name.as_bytes()), file, None));
    fs::rename(from.at(name), to.at(name)).expect("renamed");
    target.finish();
    source.finish();
}

fn carry<'w>(
    from: &Directory<'w>,
    (source, target): (&Turn<'_, Directory<'w>>, &Turn<'_, Directory<'w>>),
    name: &str,
    world: &World,
) {
    let path = from.at(name);
    let (file, data, attributes) = (handle(&path), fs::read(&path).expect("read"), attributes(&path));
    let holds = NameChange::Holds { file, attributes, data: &data };
    assert!(target.capture(inode(&path), &file, |record| record(&holds)));
    let lsn = world.engine.captured(inode(&path)).expect("captured").lsn;
    assert!(source.log(&NameChange::Settled { file, held: Some((target.elsewhere(), lsn)) }));
}

/// A mail: written in one directory, synced, moved to another.
#[test]
fn a_file_that_moved_to_another_directory_is_there_alone_with_all_it_had() {
    for has in [Has::Nothing, Has::Made, Has::Moved] {
        let world = World::new(16 << 20);
        let (from, to) = (Directory::below(&world, "tmp"), Directory::below(&world, "new"));
        fs::write(from.make("mail"), "dear reader").expect("written");
        assert!(from.sync("mail"));
        carried(&from, &to, "mail", &world);
        assert!(!from.fsync() && !to.fsync());
        match has {
            Has::Nothing => fs::remove_file(to.at("mail")).expect("removed"),
            Has::Made => {
                fs::write(to.at("mail"), "").expect("emptied");
                fs::rename(to.at("mail"), from.at("mail")).expect("renamed back");
            }
            Has::Moved => fs::write(to.at("mail"), "").expect("emptied"),
        }
        drop((from, to));
        let (done, dir, _memory) = world.recover();
        done.expect("a recovery");
        assert_eq!(names(&dir.path().join("tmp")), Vec::<String>::new(), "{has:?}");
        assert_eq!(names(&dir.path().join("new")), ["mail"], "{has:?}");
        let mail = dir.path().join("new/mail");
        assert_eq!(fs::read_to_string(&mail).expect("read"), "dear reader", "{has:?}");
        assert_eq!(mail.metadata().expect("there").nlink(), 1, "{has:?}");
    }
}

/// The power goes between what says that another directory has the file, and the move.
#[test]
fn what_was_carried_ahead_of_a_move_that_never_came_is_where_it_was() {
    let world = World::new(16 << 20);
    let (from, to) = (Directory::below(&world, "tmp"), Directory::below(&world, "new"));
    fs::write(from.make("mail"), "dear reader").expect("written");
    assert!(from.sync("mail"));
    let (source, target) = (from.turn(), to.turn());
    carry(&from, (&source, &target), "mail", &world);
    target.finish();
    source.finish();
    fs::remove_file(from.at("mail")).expect("removed");
    drop((from, to));
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(fs::read_to_string(dir.path().join("tmp/mail")).expect("read"), "dear reader");
    assert_eq!(names(&dir.path().join("new")), Vec::<String>::new());
}

/// One directory was synced for real since, and changed: what the other one's records say of it is of the past.
#[test]
fn what_the_disk_has_of_one_directory_is_not_undone_by_the_other_ones_records() {
    let world = World::new(16 << 20);
    let (from, to) = (Directory::below(&world, "tmp"), Directory::below(&world, "new"));
    fs::write(from.make("mail"), "dear reader").expect("written");
    carried_bare(&from, &to, "mail");
    to.to_the_disk();
    fs::remove_file(to.at("mail")).expect("removed");
    // Somebody makes the name in the other one anew, out of the log.
    drop((from, to));
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(&dir.path().join("tmp")), Vec::<String>::new());
    assert_eq!(names(&dir.path().join("new")), Vec::<String>::new(), "it is not resurrected");
}

fn carried_bare(from: &Directory<'_>, to: &Directory<'_>, name: &str) {
    let (source, target, file) = (from.turn(), to.turn(), handle(&from.at(name)));
    assert!(source.log_move(&target, (name.as_bytes(), name.as_bytes()), file, None));
    fs::rename(from.at(name), to.at(name)).expect("renamed");
    target.finish();
    source.finish();
}

#[test]
fn a_move_to_a_directory_that_is_not_in_the_log_takes_the_other_one_out() {
    let world = World::new(16 << 20);
    let (from, to) = (Directory::below(&world, "tmp"), Directory::below(&world, "new"));
    from.make("mail");
    to.to_the_disk();
    let (source, target, file) = (from.turn(), to.turn(), handle(&from.at("mail")));
    assert!(!source.log_move(&target, (b"mail", b"mail"), file, None));
    assert!(!source.is_in_log() && !world.engine.state(from.name).has(Flag::TRACKED));
    target.finish();
    source.finish();
}

/// What one directory's log has of a file is over only where it is by now.
#[test]
fn a_file_is_settled_where_it_is_and_not_where_it_was() {
    let world = World::new(16 << 20);
    let (from, to) = (Directory::below(&world, "tmp"), Directory::below(&world, "new"));
    fs::write(from.make("mail"), "dear reader").expect("written");
    assert!(from.sync("mail"));
    let id = inode(&from.at("mail"));
    let before = world.engine.captured(id).expect("captured");
    carried(&from, &to, "mail", &world);
    let now = world.engine.captured(id).expect("captured");
    assert_eq!((before.directory, now.directory), (from.name, to.name));
    // Whoever looked before it moved comes too late.
    let turn = from.turn();
    assert!(!turn.settle(&before, id, world.engine.next_lsn(), || Ok(())));
    turn.finish();
    fs::write(to.at("mail"), "dear reader, and more").expect("written");
    let turn = to.turn();
    assert!(turn.settle(&now, id, world.engine.next_lsn(), || Ok(())));
    turn.finish();
    assert!(world.engine.captured(id).is_none());
    drop((from, to));
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    let mail = dir.path().join("new/mail");
    assert_eq!(fs::read_to_string(mail).expect("read"), "dear reader, and more");
}

#[test]
fn two_names_of_a_file_are_two_names_of_one_again() {
    let world = World::new(16 << 20);
    let directory = Directory::of(&world);
    fs::write(directory.make("tmp"), "an object").expect("written");
    assert!(directory.sync("tmp"));
    let (turn, file) = (directory.turn(), handle(&directory.at("tmp")));
    fs::hard_link(directory.at("tmp"), directory.at("object")).expect("linked");
    assert!(turn.log(&NameChange::Linked { name: b"tmp", to: b"object", file, across: Across::No }));
    turn.linked(inode(&directory.at("tmp")));
    turn.finish();
    assert_eq!(world.engine.captured(inode(&directory.at("tmp"))).expect("captured").links, 2);
    for name in ["tmp", "object"] {
        fs::remove_file(directory.at(name)).expect("removed");
    }
    drop(directory);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(dir.path()), ["object", "tmp"]);
    assert_eq!(inode(&dir.path().join("tmp")), inode(&dir.path().join("object")));
    assert_eq!(fs::read_to_string(dir.path().join("object")).expect("read"), "an object");
}

#[test]
fn a_directory_that_was_made_is_made_again() {
    let world = World::new(16 << 20);
    let directory = Directory::of(&world);
    let turn = directory.turn();
    fs::create_dir(directory.at("objects")).expect("made");
    let path = directory.at("objects");
    let known = attributes(&path);
    let attributes = seawall_core::format::Attributes {
        mode: 0o750 | seawall_core::format::Attributes::DIRECTORY,
        ..known
    };
    assert!(turn.log(&NameChange::Made { name: b"objects", file: handle(&path), attributes }));
    turn.finish();
    assert!(!directory.fsync());
    fs::remove_dir(&path).expect("removed");
    drop(directory);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    let meta = dir.path().join("objects").metadata().expect("there");
    assert_eq!((meta.is_dir(), meta.mode() & 0o7777), (true, 0o750));
    assert_eq!(names(dir.path()), ["objects"]);
}

/// The process that was about to move it died between its records and the call; whoever came next took one of the two
/// directories out of the log, and the power failed before anybody came to the other one.
#[test]
fn a_move_that_never_came_leaves_the_file_where_it_was() {
    for left in 0..2 {
        for is_captured in [false, true] {
            let world = World::new(16 << 20);
            let (from, to) = (Directory::below(&world, "tmp"), Directory::below(&world, "new"));
            fs::write(from.make("mail"), "dear reader").expect("written");
            let (source, target) = (from.turn(), to.turn());
            if is_captured {
                target.finish();
                source.finish();
                assert!(from.sync("mail"));
                let (source, target) = (from.turn(), to.turn());
                carry(&from, (&source, &target), "mail", &world);
                assert!(source.log_move(&target, (b"mail", b"mail"), handle(&from.at("mail")), None));
                target.finish();
                source.finish();
            } else {
                assert!(source.log_move(&target, (b"mail", b"mail"), handle(&from.at("mail")), None));
                target.finish();
                source.finish();
            }
            [&from, &to][left].to_the_disk();
            drop((from, to));
            let (done, dir, _memory) = world.recover();
            done.unwrap_or_else(|why| panic!("directory {left} left, {is_captured}: {why}"));
            let read = |name: &str| fs::read_to_string(dir.path().join(name)).ok();
            let found = [read("tmp/mail"), read("new/mail")];
            assert_eq!(found, [Some("dear reader".into()), None], "directory {left} left, {is_captured}");
        }
    }
}

/// Its process dies with the first record that it makes.
struct Dies;

impl sim::Observer for Dies {
    fn fenced(&self, _site: sim::Site) {
        resume_unwind(Box::new(Self));
    }
}

/// The directory that it left had nothing to retire, so the record in the other one said for ever that it may lack the move.
#[test]
fn a_process_that_dies_between_the_two_records_of_a_move_has_moved_nothing() {
    let world = World::new(16 << 20);
    let (from, to) = (Directory::below(&world, "tmp"), Directory::below(&world, "new"));
    let path = from.make("mail");
    fs::write(&path, "dear reader").expect("written");
    assert!(from.sync("mail"));
    let dead = world.dead();
    let source = world.engine.enter_directory(dead, from.name, &from);
    let target = world.engine.enter_directory(dead, to.name, &to);
    sim::install(Some(Rc::new(Dies)));
    let file = handle(&path);
    let moves = || source.log_move(&target, (b"mail", b"mail"), file, None);
    let moved = catch_unwind(AssertUnwindSafe(moves));
    sim::install(None);
    assert!(moved.is_err_and(|why| why.is::<Dies>()));
    std::mem::forget((source, target));
    // Somebody else goes on in the one, and nobody in the other.
    from.turn().finish();
    from.fsync();
    let here = Front::of(&world, &from);
    let source = here.at(c"mail");
    let rename = |_| fs::rename(&path, from.at("letter")).map_err(|_| Errno::IO);
    naming::moving_within(&here, ((c"mail", source), c"letter"), How::Plain, rename).expect("renamed");
    assert!(!from.fsync(), "it is in the log");
    drop((from, to));
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(&dir.path().join("tmp")), ["letter"]);
    assert_eq!(names(&dir.path().join("new")), [""; 0]);
}
