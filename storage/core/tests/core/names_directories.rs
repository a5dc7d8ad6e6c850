//! Directories that are made, and put in place by a rename: a part of a table, a release, a block of a time series.

use std::ffi::CStr;
use std::fs;
use std::path::Path;

use crate::common::World;
use crate::common::directory::{Directory, names};
use crate::common::front::Front;
use seawall_core::Errno;
use seawall_core::file::Flag;
use seawall_core::naming::{self, Directory as _, How};

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// mkdir(2).
fn make(world: &World, directory: &Directory<'_>, name: &CStr) {
    let front = Front::of(world, directory);
    let made = || {
        fs::create_dir(front.path(name)).expect("made");
        Ok(())
    };
    naming::making_new(&front, name, made).expect("no error");
}

/// rename(2) of a directory to `part`; `itself`: it is in the log too.
fn put(
    world: &World,
    directory: &Directory<'_>,
    (name, itself): (&CStr, Option<&Directory<'_>>),
    call: impl FnOnce() -> Result<(), Errno>,
) -> Result<(), Errno> {
    let front = Front::of(world, directory);
    let itself = itself.map(|itself| Front::of(world, itself));
    let source = front.at(name);
    naming::moving_within(&front, ((name, source), c"part"), itself.as_ref(), How::Plain, |_| call())
}

/// A directory with a file that was synced, in the log, in another one.
struct Written<'w> {
    world: &'w World,
    part: Directory<'w>,
    above: Directory<'w>,
}

impl<'w> Written<'w> {
    fn new(world: &'w World) -> Self {
        let part = Directory::below(world, "tmp");
        let above = Directory::of(world);
        fs::write(part.make("rows"), "one, two").expect("written");
        assert!(part.sync("rows"));
        Self { world, part, above }
    }

    fn rename(&self) {
        let call = || {
            fs::rename(self.above.at("tmp"), self.above.at("part")).expect("renamed");
            Ok(())
        };
        put(self.world, &self.above, (c"tmp", Some(&self.part)), call).expect("no error");
    }

    fn are_in_log(&self) -> bool {
        let is_in_log =
            |directory: &Directory<'_>| self.world.engine.state(directory.name).has(Flag::TRACKED);
        is_in_log(&self.part) && is_in_log(&self.above)
    }
}

// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn a_directory_that_is_put_in_place_waits_for_no_disk_and_is_there_after_a_power_cut() {
    for is_on_disk in [true, false] {
        let world = World::new(16 << 20);
        let written = Written::new(&world);
        written.rename();
        assert!(!written.above.fsync() && !written.part.fsync());
        let synced = [&written.above, &written.part].map(|directory| directory.synced.borrow().clone());
        assert_eq!((written.are_in_log(), synced), (true, [vec![], vec![]]));
        if !is_on_disk {
            fs::rename(written.above.at("part"), written.above.at("tmp")).expect("as it was");
        }
        fs::remove_file(written.above.at(if is_on_disk { "part/rows" } else { "tmp/rows" }))
            .expect("removed");
        drop(written);
        let (done, dir, _memory) = world.recover();
        done.expect("a recovery");
        assert_eq!(names(dir.path()), ["part"], "the disk had the rename: {is_on_disk}");
        assert_eq!(read(dir.path().join("part/rows")).as_deref(), Some("one, two"));
    }
}

#[test]
fn what_the_kernel_refuses_leaves_the_directory_where_it_was() {
    let world = World::new(16 << 20);
    let written = Written::new(&world);
    let done = put(&world, &written.above, (c"tmp", Some(&written.part)), || Err(Errno::ACCESS));
    assert_eq!((done, written.are_in_log()), (Err(Errno::ACCESS), true));
    drop(written);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(dir.path()), ["tmp"]);
    assert_eq!(read(dir.path().join("tmp/rows")).as_deref(), Some("one, two"));
}

#[test]
fn a_directory_that_the_disk_never_had_is_made_with_its_last_name() {
    let world = World::new(16 << 20);
    let above = Directory::of(&world);
    make(&world, &above, c"tmp");
    let rename = || {
        fs::rename(above.at("tmp"), above.at("part")).expect("renamed");
        Ok(())
    };
    put(&world, &above, (c"tmp", None), rename).expect("no error");
    assert!(!above.fsync());
    fs::remove_dir(above.at("part")).expect("removed");
    drop(above);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(dir.path()), ["part"]);
    assert!(dir.path().join("part").is_dir());
}

/// No record says that the directory which gave way is gone.
#[test]
fn over_an_empty_directory_the_change_is_the_disks() {
    let world = World::new(16 << 20);
    fs::create_dir(world.dir.path().join("part")).expect("made");
    let written = Written::new(&world);
    written.rename();
    assert!(!written.are_in_log());
    assert!(written.above.fsync() && written.part.fsync());
}

/// The kernel moves no directory over a file.
#[test]
fn regression_a_directory_is_made_again_where_the_disk_still_has_a_file() {
    let world = World::new(16 << 20);
    let elsewhere = tempfile::tempdir_in(world.dir.path()).expect("a directory");
    let above = Directory::of(&world);
    let (file, kept) = (above.make("part"), elsewhere.path().join("kept"));
    fs::hard_link(&file, &kept).expect("linked");
    above.remove("part");
    make(&world, &above, c"part");
    fs::remove_dir(&file).expect("the disk has nothing of this");
    fs::rename(kept, &file).expect("it has the file");
    drop(above);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert!(dir.path().join("part").is_dir());
}

/// Two directories change places by a third name, and a file gets the first one's.
#[test]
fn names_that_led_to_directories_lead_to_others_after_a_power_cut() {
    let world = World::new(16 << 20);
    let below = ["old", "new"].map(|name| Directory::below(&world, name));
    let above = Directory::of(&world);
    let renames = [("old", "older"), ("new", "old")];
    for ((from, to), itself) in renames.into_iter().zip(&below) {
        let front = [&above, itself].map(|directory| Front::of(&world, directory));
        let [name, to_name] = [from, to].map(|name| std::ffi::CString::new(name).expect("text"));
        let call = |_| {
            fs::rename(above.at(from), above.at(to)).expect("renamed");
            Ok(())
        };
        let names = ((&*name, front[0].at(&name)), &*to_name);
        naming::moving_within(&front[0], names, Some(&front[1]), How::Plain, call).expect("no error");
    }
    fs::write(above.make("new"), "a file now").expect("written");
    assert!(above.sync("new"));
    // The disk has nothing of that.
    fs::remove_file(above.at("new")).expect("removed");
    for (from, to) in renames.into_iter().rev() {
        fs::rename(above.at(to), above.at(from)).expect("as it was");
    }
    fs::write(above.at("old/which"), "the older").expect("written");
    fs::write(above.at("new/which"), "the newer").expect("written");
    drop((above, below));
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(dir.path()), ["new", "old", "older"]);
    let read = |name| read(dir.path().join(name));
    assert_eq!(read("older/which").as_deref(), Some("the older"));
    assert_eq!(read("old/which").as_deref(), Some("the newer"));
    assert_eq!(read("new").as_deref(), Some("a file now"));
}
