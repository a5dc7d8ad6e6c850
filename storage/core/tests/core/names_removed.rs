//! Directories that lose their only name: by rmdir(2), or by a rename of another one over them.

use std::fs;
use std::path::PathBuf;

use rustix::fs::XattrFlags;

use crate::common::World;
use crate::common::directory::{Directory, names};
use crate::common::front::Front;
use crate::names_directories::{Written, is_in_log, put, read};
use seawall_core::naming;
use seawall_core::{Errno, stand_in};

/// Nobody knows what the disk has in it.
#[test]
fn the_removal_of_a_directory_that_the_log_does_not_know_is_the_disks() {
    let world = World::new(16 << 20);
    fs::create_dir(world.dir.path().join("part")).expect("made");
    let written = Written::new(&world);
    written.rename();
    assert!(!written.are_in_log());
    assert!(written.above.fsync() && written.part.fsync());
    fs::create_dir(world.dir.path().join("other")).expect("made");
    let remove = || fs::remove_dir(written.above.at("other")).map_err(|_| Errno::IO);
    naming::removing_directory(&Front::of(&world, &written.above), c"other", remove).expect("removed");
    assert!(written.above.fsync());
}

/// A directory that is removed: kept beside the world, as the disk still has it.
struct Aside {
    dir: tempfile::TempDir,
    at: PathBuf,
}

impl Aside {
    fn new(world: &World) -> Self {
        Self {
            dir: tempfile::tempdir_in("/var/tmp").expect("a directory"),
            at: world.dir.path().join("part"),
        }
    }

    fn take(&self) -> Result<(), Errno> {
        assert_eq!(fs::read_dir(&self.at).expect("there").count(), 0, "the kernel removes an empty one only");
        fs::rename(&self.at, self.dir.path().join("part")).expect("aside");
        Ok(())
    }

    fn is_back(&self) {
        fs::rename(self.dir.path().join("part"), &self.at).expect("as it was");
    }
}

/// A directory in the log that had a file, and another one with rows beside it.
fn emptied(world: &World) -> (Directory<'_>, Written<'_>, Aside) {
    let part = Directory::below(world, "part");
    part.make("rows");
    part.remove("rows");
    (part, Written::new(world), Aside::new(world))
}

// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn a_directory_that_was_removed_does_not_come_back_and_nor_does_its_guard() {
    for is_on_disk in [false, true] {
        let world = World::new(16 << 20);
        let (part, written, aside) = emptied(&world);
        let front = Front::of(&world, &written.above).above(&[&part]);
        naming::removing_directory(&front, c"part", || aside.take()).expect("removed");
        assert_eq!(part.synced.borrow().len(), 1, "the disk has it empty by then");
        assert!(written.are_in_log() && !written.above.fsync());
        if !is_on_disk {
            aside.is_back();
            let note = aside.at.join(stand_in::NOTE);
            fs::write(&note, "a guard's text").expect("written");
            rustix::fs::setxattr(&note, stand_in::MARK, b"", XattrFlags::empty()).expect("marked");
        }
        drop(front);
        drop((written, part));
        let (done, dir, _memory) = world.recover();
        done.expect("a recovery");
        assert_eq!(names(dir.path()), ["tmp"], "the disk had it: {}", !is_on_disk);
    }
}

// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn a_directory_takes_the_place_of_an_empty_one() {
    for is_on_disk in [false, true] {
        let world = World::new(16 << 20);
        let (part, written, aside) = emptied(&world);
        let rename = || {
            aside.take()?;
            fs::rename(written.above.at("tmp"), written.above.at("part")).expect("renamed");
            Ok(())
        };
        put(&world, (&written.above, &[&part, &written.part]), c"tmp", rename).expect("renamed");
        assert!(written.are_in_log() && !written.above.fsync());
        if !is_on_disk {
            fs::rename(written.above.at("part"), written.above.at("tmp")).expect("as it was");
            aside.is_back();
        }
        drop((written, part));
        let (done, dir, _memory) = world.recover();
        done.expect("a recovery");
        assert_eq!(names(dir.path()), ["part"], "the disk had it: {is_on_disk}");
        assert_eq!(read(dir.path().join("part/rows")).as_deref(), Some("one, two"));
    }
}

/// In a new log it looked like one that the disk never had, and recovery refused a log that says that it is gone.
#[test]
fn a_directory_that_entered_before_the_first_record_may_go() {
    let world = World::new(16 << 20);
    let (part, above) = (Directory::below(&world, "part"), Directory::of(&world));
    let front = Front::of(&world, &above).above(&[&part]);
    let remove = || fs::remove_dir(above.at("part")).map_err(|_| Errno::IO);
    naming::removing_directory(&front, c"part", remove).expect("removed");
    assert!(!above.fsync(), "it is a record");
    drop(front);
    drop((above, part));
    let (done, dir, _memory) = world.recover();
    assert_eq!(done.expect("a recovery").live, 1);
    assert_eq!(names(dir.path()), [""; 0]);
}

/// Whatever that is: no record says that it may go.
#[test]
fn a_removed_directory_in_which_the_disk_has_something_stays() {
    let world = World::new(16 << 20);
    let (part, written, aside) = emptied(&world);
    let front = Front::of(&world, &written.above).above(&[&part]);
    naming::removing_directory(&front, c"part", || aside.take()).expect("removed");
    aside.is_back();
    fs::write(aside.at.join("found"), "somebody's").expect("written");
    drop(front);
    drop((written, part));
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(read(dir.path().join("part/found")).as_deref(), Some("somebody's"));
}

/// What happened in it while it was out is not in the log, and may not be on the disk.
#[test]
fn the_removal_of_a_directory_that_is_out_of_the_log_is_the_disks() {
    let world = World::new(16 << 20);
    let (part, written, aside) = emptied(&world);
    part.to_the_disk();
    let front = Front::of(&world, &written.above).above(&[&part]);
    naming::removing_directory(&front, c"part", || aside.take()).expect("removed");
    assert!(!is_in_log(&world, &written.above) && written.above.fsync());
}

#[test]
fn a_directory_with_something_in_it_stays_in_the_log_and_so_does_the_one_above() {
    let world = World::new(16 << 20);
    let part = Directory::below(&world, "part");
    part.make("rows");
    let written = Written::new(&world);
    let next = world.engine.next_lsn();
    let others: [&Directory<'_>; 2] = [&part, &written.part];
    let removed =
        naming::removing_directory(&Front::of(&world, &written.above).above(&others), c"part", || {
            Err::<(), _>(Errno::NOTEMPTY)
        });
    let replaced = put(&world, (&written.above, &others), c"tmp", || Err(Errno::NOTEMPTY));
    assert_eq!((removed, replaced), (Err(Errno::NOTEMPTY), Err(Errno::NOTEMPTY)));
    assert_eq!(world.engine.next_lsn(), next, "what the kernel refuses has no record");
    assert!(written.are_in_log() && is_in_log(&world, &part));
}

/// Its records outlived it, and recovery refused a log that has some of a directory which is nowhere.
#[test]
fn a_directory_that_somebody_is_in_leaves_the_log_before_it_goes() {
    for (is_replaced, is_above_in_log) in [(false, false), (false, true), (true, false), (true, true)] {
        let world = World::new(16 << 20);
        let (part, written, aside) = emptied(&world);
        if !is_above_in_log {
            written.above.to_the_disk();
        }
        std::mem::forget(world.engine.enter_directory(world.dead(), part.name, &part));
        let goes = || {
            assert!(!is_in_log(&world, &part));
            aside.take()
        };
        let done = match is_replaced {
            true => put(&world, (&written.above, &[&part, &written.part]), c"tmp", || {
                goes()?;
                fs::rename(written.above.at("tmp"), written.above.at("part")).expect("renamed");
                Ok(())
            }),
            false => {
                let front = Front::of(&world, &written.above).above(&[&part]);
                naming::removing_directory(&front, c"part", goes)
            }
        };
        assert_eq!(done, Ok(()));
        drop((written, part));
        let (done, dir, _memory) = world.recover();
        done.expect("a recovery");
        assert_eq!(names(dir.path()), [if is_replaced { "part" } else { "tmp" }]);
    }
}

/// Otherwise it is back in the log by then, or empty although it was not: with records that outlive it.
#[test]
fn nobody_is_in_a_directory_while_it_goes() {
    for is_full in [false, true] {
        let world = World::new(16 << 20);
        let (part, written, aside) = emptied(&world);
        if is_full {
            part.make("rows");
        }
        let front = Front::of(&world, &written.above).above(&[&part]);
        let goes = || {
            assert!(world.engine.try_enter_directory(world.who(1), part.name, &part).is_none());
            if is_full { Err(Errno::NOTEMPTY) } else { aside.take() }
        };
        let done = naming::removing_directory(&front, c"part", goes);
        assert_eq!(done.is_err(), is_full);
        assert!(world.engine.try_enter_directory(world.who(1), part.name, &part).is_some());
    }
}

/// It was not there when the call looked, and its records would outlive it.
#[test]
fn no_directory_enters_the_log_while_one_that_the_log_does_not_know_goes() {
    let world = World::new(16 << 20);
    let written = Written::new(&world);
    fs::create_dir(written.above.at("other")).expect("made");
    let enters = || {
        written.part.to_the_disk();
        written.part.fsync();
        is_in_log(&world, &written.part)
    };
    let front = Front::of(&world, &written.above);
    naming::removing_directory(&front, c"other", || {
        assert!(!enters());
        Ok(())
    })
    .expect("removed");
    assert!(enters());
}

#[test]
fn a_signal_handler_in_a_change_of_a_directory_may_remove_that() {
    let world = World::new(16 << 20);
    let (part, written, aside) = emptied(&world);
    let interrupted = part.turn();
    let front = Front::of(&world, &written.above).above(&[&part]);
    naming::removing_directory(&front, c"part", || aside.take()).expect("removed");
    interrupted.finish();
    assert!(!is_in_log(&world, &part) && !is_in_log(&world, &written.above));
}

#[test]
fn a_directory_is_not_removed_by_a_name_in_it() {
    let world = World::new(16 << 20);
    let above = Directory::of(&world);
    let front = Front::of(&world, &above).above(&[&above]);
    let done = naming::removing_directory(&front, c".", || Err::<(), _>(Errno::INVAL));
    assert_eq!(done, Err(Errno::INVAL));
}
