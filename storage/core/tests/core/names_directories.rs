//! Directories that are made, and put in place by a rename: a part of a table, a release, a block of a time series.

use std::ffi::CStr;
use std::fs;
use std::path::Path;

use crate::common::World;
use crate::common::directory::{Directory, handle, names};
use crate::common::front::Front;
use seawall_core::Errno;
use seawall_core::file::Flag;
use seawall_core::naming::{self, Directory as _, How};

pub fn read(path: impl AsRef<Path>) -> Option<String> {
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

/// rename(2) of a directory to `part`, where the log knows these directories too.
pub fn put(
    world: &World,
    (directory, others): (&Directory<'_>, &[&Directory<'_>]),
    name: &CStr,
    call: impl FnOnce() -> Result<(), Errno>,
) -> Result<(), Errno> {
    let front = Front::of(world, directory).above(others);
    let source = front.at(name);
    naming::moving_within(&front, ((name, source), c"part"), How::Plain, |_| call())
}

pub fn is_in_log(world: &World, directory: &Directory<'_>) -> bool {
    world.engine.state(directory.name).has(Flag::TRACKED)
}

/// A directory with a file that was synced, in the log, in another one.
pub struct Written<'w> {
    world: &'w World,
    pub part: Directory<'w>,
    pub above: Directory<'w>,
}

impl<'w> Written<'w> {
    pub fn new(world: &'w World) -> Self {
        let part = Directory::below(world, "tmp");
        let above = Directory::of(world);
        fs::write(part.make("rows"), "one, two").expect("written");
        assert!(part.sync("rows"));
        Self { world, part, above }
    }

    pub fn rename(&self) {
        let call = || {
            fs::rename(self.above.at("tmp"), self.above.at("part")).expect("renamed");
            Ok(())
        };
        put(self.world, (&self.above, &[&self.part]), c"tmp", call).expect("no error");
    }

    pub fn are_in_log(&self) -> bool {
        is_in_log(self.world, &self.part) && is_in_log(self.world, &self.above)
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
    let done = put(&world, (&written.above, &[&written.part]), c"tmp", || Err(Errno::ACCESS));
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
    put(&world, (&above, &[]), c"tmp", rename).expect("no error");
    assert!(!above.fsync());
    fs::remove_dir(above.at("part")).expect("removed");
    drop(above);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(dir.path()), ["part"]);
    assert!(dir.path().join("part").is_dir());
}

// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn directories_that_changed_places_have_each_other_s_after_a_power_cut() {
    let world = World::new(16 << 20);
    let below = ["one", "two"].map(|name| Directory::below(&world, name));
    let above = Directory::of(&world);
    for (directory, text) in below.iter().zip(["the first", "the second"]) {
        fs::write(directory.make("which"), text).expect("written");
        assert!(directory.sync("which"));
    }
    let exchange = || {
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(&above.file, "one", &above.file, "two", flags)
    };
    let front = Front::of(&world, &above).above(&[&below[0], &below[1]]);
    let names = ((c"one", front.at(c"one")), c"two");
    naming::moving_within(&front, names, How::Exchange, |_| exchange()).expect("no error");
    assert!(below.iter().chain([&above]).all(|directory| is_in_log(&world, directory)));
    exchange().expect("as it was");
    drop(front);
    drop((above, below));
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    let read = |name| read(dir.path().join(name));
    assert_eq!(read("one/which").as_deref(), Some("the second"));
    assert_eq!(read("two/which").as_deref(), Some("the first"));
}

/// rename(2) of a directory to another directory, by the same name.
fn put_into(world: &World, from: &Front<'_>, to: &Directory<'_>, name: &CStr) {
    let into = Front::of(world, to);
    let rename = |_| {
        fs::rename(from.path(name), into.path(name)).expect("renamed");
        Ok(())
    };
    naming::moving_across((from, name), (&into, name), How::Plain, rename).expect("no error");
}

// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn a_directory_that_moved_to_another_one_is_there_after_a_power_cut() {
    for is_on_disk in [true, false] {
        let world = World::new(16 << 20);
        let to = Directory::below(&world, "done");
        let written = Written::new(&world);
        put_into(&world, &Front::of(&world, &written.above).above(&[&written.part]), &to, c"tmp");
        assert!(written.are_in_log() && is_in_log(&world, &to));
        assert!(!written.above.fsync() && !to.fsync());
        if !is_on_disk {
            fs::rename(to.at("tmp"), written.above.at("tmp")).expect("as it was");
        }
        drop((written, to));
        let (done, dir, _memory) = world.recover();
        done.expect("a recovery");
        assert_eq!(names(dir.path()), ["done"], "the disk had it: {is_on_disk}");
        assert_eq!(read(dir.path().join("done/tmp/rows")).as_deref(), Some("one, two"));
    }
}

/// What was below another directory is above it then: they cannot move in any order.
#[test]
fn directories_that_changed_places_in_the_tree_do_so_again() {
    for names_of in [["a", "b"], ["b", "a"]] {
        let world = World::new(16 << 20);
        let [outer, inner] = names_of.map(|name| std::ffi::CString::new(name).expect("text"));
        let text = |name: &CStr| name.to_str().expect("text").to_owned();
        let below = Directory::below(&world, &format!("{}/{}", names_of[0], names_of[1]));
        let middle = Directory::below(&world, names_of[0]);
        let above = Directory::of(&world);
        put_into(&world, &Front::of(&world, &middle).above(&[&below]), &above, &inner);
        below.moved_to(above.at(&text(&inner)));
        put_into(&world, &Front::of(&world, &above).above(&[&middle]), &below, &outer);
        assert!([&below, &middle, &above].iter().all(|directory| is_in_log(&world, directory)));
        let swapped = format!("{}/{}", text(&inner), text(&outer));
        fs::rename(above.at(&swapped), above.at(&text(&outer))).expect("as it was");
        fs::rename(above.at(&text(&inner)), above.at(&format!("{}/{}", text(&outer), text(&inner))))
            .expect("as it was");
        drop((below, middle, above));
        let (done, dir, _memory) = world.recover();
        done.expect("a recovery");
        assert!(dir.path().join(&swapped).is_dir());
        assert_eq!(names(dir.path()), [text(&inner)]);
    }
}

/// The one that went out moved once more since, so its last move is younger than the other one's into it.
#[test]
fn a_directory_moves_into_one_that_was_below_it_and_has_moved_on() {
    let world = World::new(16 << 20);
    let below = Directory::below(&world, "a/b");
    let middle = Directory::below(&world, "a");
    let above = Directory::of(&world);
    put_into(&world, &Front::of(&world, &middle).above(&[&below]), &above, c"b");
    below.moved_to(above.at("b"));
    put_into(&world, &Front::of(&world, &above).above(&[&middle]), &below, c"a");
    let rename = || {
        fs::rename(above.at("b"), above.at("part")).expect("renamed");
        Ok(())
    };
    put(&world, (&above, &[&below]), c"b", rename).expect("no error");
    assert!([&below, &middle, &above].iter().all(|directory| is_in_log(&world, directory)));
    fs::rename(above.at("part/a"), above.at("a")).expect("as it was");
    fs::rename(above.at("part"), above.at("a/b")).expect("as it was");
    drop((below, middle, above));
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(dir.path()), ["part"]);
    assert_eq!(names(&dir.path().join("part")), ["a"]);
    assert_eq!(names(&dir.path().join("part/a")), Vec::<String>::new());
}

/// What recovery would make of a record of that is nothing that the kernel does.
#[test]
fn a_directory_is_not_put_below_itself_and_no_record_says_so() {
    let world = World::new(16 << 20);
    let below = Directory::below(&world, "tmp/below");
    let written = Written::new(&world);
    let front = Front::of(&world, &written.above).above(&[&written.part]);
    for into in [&below, &written.part] {
        assert!(written.are_in_log() && world.engine.state(below.name).has(Flag::TRACKED));
        let into = Front::of(&world, into);
        let before = world.engine.next_lsn();
        let rename = |_| rustix::fs::rename(front.path(c"tmp"), into.path(c"tmp"));
        let done = naming::moving_across((&front, c"tmp"), (&into, c"tmp"), How::Plain, rename);
        assert_eq!((done, world.engine.next_lsn()), (Err(Errno::INVAL), before));
        let aside = |_| Err::<(), _>(Errno::ACCESS);
        let done = naming::moving_across((&into, c"rows"), (&front, c"rows"), How::Plain, aside);
        assert_eq!(done, Err(Errno::ACCESS), "the other way round it is the kernel's affair");
        [&written.above, &written.part, &below].iter().for_each(|directory| _ = directory.fsync());
    }
}

/// The kernel refuses it, as something else was moved meanwhile, and the power fails before its record is taken back.
#[test]
fn a_directory_that_the_log_puts_below_itself_stays() {
    for is_on_disk in [true, false] {
        let world = World::new(16 << 20);
        let below = Directory::below(&world, if is_on_disk { "tmp/below" } else { "below" });
        let written = Written::new(&world);
        if !is_on_disk {
            put_into(&world, &Front::of(&world, &written.above).above(&[&below]), &written.part, c"below");
            below.moved_to(written.part.at("below"));
        }
        let file = handle(&written.above.at("tmp"));
        let (source, target) = (written.above.turn(), below.turn());
        assert!(source.log_move(&target, (b"tmp", b"itself"), file, None));
        if !is_on_disk {
            fs::rename(written.part.at("below"), written.above.at("below")).expect("as it was");
        }
        std::mem::forget((source, target));
        drop((written, below));
        let (done, dir, _memory) = world.recover();
        done.unwrap_or_else(|error| panic!("{is_on_disk}: {error}"));
        assert_eq!(names(dir.path()), ["tmp"], "{is_on_disk}");
        assert_eq!(names(&dir.path().join("tmp")), ["below", "rows"], "{is_on_disk}");
        assert_eq!(names(&dir.path().join("tmp/below")), Vec::<String>::new(), "{is_on_disk}");
    }
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
        let front = Front::of(&world, &above).above(&[itself]);
        let [name, to_name] = [from, to].map(|name| std::ffi::CString::new(name).expect("text"));
        let call = |_| {
            fs::rename(above.at(from), above.at(to)).expect("renamed");
            Ok(())
        };
        let names = ((&*name, front.at(&name)), &*to_name);
        naming::moving_within(&front, names, How::Plain, call).expect("no error");
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
