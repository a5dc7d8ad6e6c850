//! Files that get a name in another directory in the log, and symbolic links.

use std::ffi::CStr;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use crate::common::directory::{self, names};
use crate::common::front::{Front, inode};
use crate::common::{Managed, World, roll_back};
use seawall_core::Errno;
use seawall_core::destage::{Destager, Files};
use seawall_core::file::Flag;
use seawall_core::file::captured::Captured;
use seawall_core::naming::{self, Directory};

/// What the disk has when the power goes.
#[derive(Clone, Copy, Debug)]
enum Has {
    Nothing,
    /// The file, empty, where it was made.
    Made,
    /// It has both names, and no content.
    Linked,
    /// The first name is gone.
    Delivered,
}

/// Two directories, and a mail that was synced in the first of them.
struct Mail<'w> {
    from: directory::Directory<'w>,
    to: directory::Directory<'w>,
    world: &'w World,
}

impl<'w> Mail<'w> {
    fn written(world: &'w World) -> Self {
        let (from, to) =
            (directory::Directory::below(world, "tmp"), directory::Directory::below(world, "new"));
        fs::write(from.make("mail"), "dear reader").expect("written");
        assert!(from.sync("mail"));
        Self { from, to, world }
    }

    fn link(&self, call: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        let fronts = [&self.from, &self.to].map(|directory| Front::of(self.world, directory));
        naming::linking_across((&fronts[0], c"mail"), (&fronts[1], c"mail"), call)
    }

    fn deliver(&self) {
        let made = || {
            fs::hard_link(self.from.at("mail"), self.to.at("mail")).expect("linked");
            Ok(())
        };
        self.link(made).expect("no error");
    }

    fn remove(&self, of: &directory::Directory<'_>) {
        let front = Front::of(self.world, of);
        let gone = |_| {
            fs::remove_file(of.at("mail")).expect("removed");
            Ok(())
        };
        naming::removing(&front, c"mail", gone).expect("no error");
    }

    fn is_in_log(&self, directory: &directory::Directory<'_>) -> bool {
        self.world.engine.state(directory.name).has(Flag::TRACKED)
    }

    /// Real syncs so far.
    fn synced(&self) -> [Vec<bool>; 2] {
        [&self.from, &self.to].map(|directory| directory.synced.borrow().clone())
    }
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// A mail gets its final name by a link, and loses the first one: no step waits for the disk.
#[test]
fn a_mail_that_was_linked_to_another_directory_is_there_alone_with_all_it_had() {
    for has in [Has::Nothing, Has::Made, Has::Linked, Has::Delivered] {
        let world = World::new(16 << 20);
        let mail = Mail::written(&world);
        mail.deliver();
        let known = world.engine.captured(inode(&mail.to.at("mail"))).expect("captured");
        assert_eq!((known.directory, known.links, known.is_spread), (mail.to.name, 2, true));
        mail.remove(&mail.from);
        assert!(!mail.from.fsync() && !mail.to.fsync(), "{has:?}");
        assert_eq!(mail.synced(), [vec![], vec![]], "{has:?}");
        let (old, new) = (mail.from.at("mail"), mail.to.at("mail"));
        match has {
            Has::Nothing => fs::remove_file(&new).expect("removed"),
            Has::Made => fs::rename(&new, &old).expect("renamed back"),
            Has::Linked => fs::hard_link(&new, &old).expect("linked"),
            Has::Delivered => {}
        }
        for path in [&old, &new].into_iter().filter(|path| path.exists()) {
            fs::write(path, "").expect("emptied");
        }
        drop(mail);
        let (done, dir, _memory) = world.recover();
        done.expect("a recovery");
        assert_eq!(names(&dir.path().join("tmp")), Vec::<String>::new(), "{has:?}");
        assert_eq!(names(&dir.path().join("new")), ["mail"], "{has:?}");
        let mail = dir.path().join("new/mail");
        assert_eq!(read(&mail).as_deref(), Some("dear reader"), "{has:?}");
        assert_eq!(mail.metadata().expect("there").nlink(), 1, "{has:?}");
    }
}

/// The power goes before the first name does.
#[test]
fn both_names_lead_to_one_file_again() {
    let world = World::new(16 << 20);
    let mail = Mail::written(&world);
    mail.deliver();
    for directory in [&mail.from, &mail.to] {
        fs::remove_file(directory.at("mail")).expect("removed");
    }
    drop(mail);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    let [old, new] = ["tmp/mail", "new/mail"].map(|path| dir.path().join(path));
    assert_eq!((inode(&old), read(&new).as_deref()), (inode(&new), Some("dear reader")));
}

/// The records of the directory that loses its name have the content: the other name would be left with a file that is
/// empty, once its own directory was synced.
#[test]
fn the_name_whose_directory_has_the_content_does_not_go_by_a_record_while_there_is_another() {
    let world = World::new(16 << 20);
    let mail = Mail::written(&world);
    mail.deliver();
    mail.remove(&mail.to);
    assert!(!mail.is_in_log(&mail.to), "it was synced, with all its files, before the name went");
    assert_eq!(mail.synced(), [vec![], vec![true]]);
    assert_eq!(world.engine.captured(inode(&mail.from.at("mail"))), None);
}

/// What the directory's records had of the file is in the other one's by then, which has no name for it.
#[test]
fn a_link_that_the_kernel_refuses_leaves_the_content_on_the_disk() {
    let world = World::new(16 << 20);
    let mail = Mail::written(&world);
    assert_eq!(mail.link(|| Err(Errno::MLINK)), Err(Errno::MLINK));
    assert_eq!(mail.synced()[1], [true], "all files were synced");
    assert_eq!(world.engine.captured(inode(&mail.from.at("mail"))), None);
    assert!(!mail.is_in_log(&mail.from) && !mail.is_in_log(&mail.to));
}

/// A daemon's descriptors of the two directories, and which it synced. Only the first one may be due.
struct Daemon<'m, 'w> {
    mail: &'m Mail<'w>,
    synced: Vec<u32>,
}

impl Files for Daemon<'_, '_> {
    fn descriptor(&mut self, slot: u32) -> std::io::Result<BorrowedFd<'_>> {
        let is_first = slot == self.mail.from.name.slot;
        Ok(if is_first { &self.mail.from } else { &self.mail.to }.file.as_fd())
    }

    fn sync_directory(&mut self, slot: u32, _files: &[Captured]) -> std::io::Result<()> {
        self.synced.push(slot);
        Ok(())
    }

    fn is_due(&mut self, slot: u32, _watermark: u64) -> bool {
        slot == self.mail.from.name.slot
    }
}

/// A file system's journal need not have the new name when a sync of the directory with the old one returns, and that
/// one's watermark vouches for the link. The simulator found it.
#[test]
fn a_directory_whose_file_got_a_name_elsewhere_is_not_destaged_alone() {
    let world = World::new(16 << 20);
    let mail = Mail::written(&world);
    mail.deliver();
    let mut files = Daemon { mail: &mail, synced: Vec::new() };
    let round = Destager::new(&world.engine, world.who(0)).round(&mut files);
    assert!(round.failed.is_empty());
    files.synced.sort_unstable();
    let mut both = [mail.from.name.slot, mail.to.name.slot];
    both.sort_unstable();
    assert_eq!(files.synced, both);
    assert!(!world.engine.is_dirty(mail.from.name) && world.engine.is_dirty(mail.to.name));
}

/// Programs try to take a lock so, again and again.
#[test]
fn a_link_to_a_name_that_is_taken_costs_nothing() {
    let world = World::new(16 << 20);
    let mail = Mail::written(&world);
    mail.to.make("mail");
    let before = world.engine.next_lsn();
    assert_eq!(mail.link(|| Err(Errno::EXIST)), Err(Errno::EXIST));
    assert_eq!((world.engine.next_lsn(), mail.synced()), (before, [vec![], vec![]]));
    assert!(mail.is_in_log(&mail.from) && mail.is_in_log(&mail.to));
}

/// The other directory was synced since, and the name there removed: the disk has that.
#[test]
fn what_the_disk_has_of_the_other_directory_is_not_undone() {
    let world = World::new(16 << 20);
    let mail = Mail::written(&world);
    mail.deliver();
    mail.to.to_the_disk();
    fs::remove_file(mail.to.at("mail")).expect("removed");
    drop(mail);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(&dir.path().join("new")), Vec::<String>::new(), "it is not resurrected");
    assert_eq!(read(dir.path().join("tmp/mail")).as_deref(), Some("dear reader"));
}

/// A file gets a log of its own, and content that only that log has.
fn rewritten(world: &World, path: &str) -> Managed {
    let file = world.manage(path);
    assert!(world.fsync(&file));
    world.pwrite(&file, 0, b"another text", 0);
    assert!(!world.fsync(&file));
    file
}

fn moved_across(mail: &Mail<'_>, name: &CStr) {
    let [from, to] = [&mail.from, &mail.to].map(|directory| Front::of(mail.world, directory));
    let call = |_| {
        fs::rename(from.path(name), to.path(c"mail")).expect("moved");
        Ok(())
    };
    naming::moving_across((&from, name), (&to, c"mail"), naming::How::Plain, call).expect("no error");
}

/// The other directory's records are over, so that the first one's say of this file only that it lost a name.
#[test]
fn the_records_of_a_file_count_whichever_name_it_has_lost() {
    let removed = |world: &World, mail: &Mail<'_>| {
        mail.deliver();
        mail.remove(&mail.from);
        mail.to.to_the_disk();
        rewritten(world, "new/mail")
    };
    let destaged = |world: &World, mail: &Mail<'_>| {
        mail.deliver();
        let mut files = Daemon { mail, synced: Vec::new() };
        assert!(Destager::new(&world.engine, world.who(0)).round(&mut files).failed.is_empty());
        mail.remove(&mail.from);
        mail.to.to_the_disk();
        rewritten(world, "new/mail")
    };
    let replaced = |world: &World, mail: &Mail<'_>| {
        mail.deliver();
        mail.from.make("next");
        moved_within(world, &mail.from, (c"next", c"mail"));
        mail.to.to_the_disk();
        rewritten(world, "new/mail")
    };
    let moved = |world: &World, mail: &Mail<'_>| {
        let front = Front::of(world, &mail.from);
        let linked = || {
            fs::hard_link(mail.from.at("mail"), mail.from.at("ready")).expect("linked");
            Ok(())
        };
        naming::linking_within(&front, (c"mail", c"ready"), linked).expect("no error");
        mail.remove(&mail.from);
        moved_across(mail, c"ready");
        mail.to.to_the_disk();
        rewritten(world, "new/mail")
    };
    let refused = |world: &World, mail: &Mail<'_>| {
        let front = Front::of(world, &mail.from);
        assert_eq!(naming::removing(&front, c"mail", |_| Err::<(), _>(Errno::PERM)), Err(Errno::PERM));
        moved_across(mail, c"mail");
        mail.to.to_the_disk();
        rewritten(world, "new/mail")
    };
    type Way = dyn Fn(&World, &Mail<'_>) -> Managed;
    let ways: [(&str, &Way); 5] = [
        ("removed", &removed),
        ("destaged", &destaged),
        ("replaced", &replaced),
        ("moved", &moved),
        ("refused", &refused),
    ];
    for (what, way) in ways {
        let world = World::new(16 << 20);
        let mail = Mail::written(&world);
        let file = way(&world, &mail);
        assert!(mail.is_in_log(&mail.from) && world.engine.is_dirty(mail.from.name), "{what}");
        roll_back(&file, b"dear reader");
        drop(mail);
        let (done, dir, _memory) = world.recover();
        done.expect("a recovery");
        assert_eq!(read(dir.path().join("new/mail")).as_deref(), Some("another text"), "{what}");
    }
}

/// The directory of its other name was not in the log, and is behind.
#[test]
fn regression_what_was_synced_is_in_a_file_that_comes_back_by_a_name_that_the_log_does_not_know() {
    let world = World::new(16 << 20);
    let (new, elsewhere) = (directory::Directory::below(&world, "new"), world.dir.path().join("old"));
    fs::create_dir(&elsewhere).expect("made");
    fs::write(elsewhere.join("mail"), "dear").expect("written");
    fs::hard_link(elsewhere.join("mail"), new.at("mail")).expect("linked");
    assert!(new.fsync(), "a link from elsewhere is the disk's");
    fs::write(new.at("mail"), "dear reader").expect("written");
    assert!(new.sync("mail"), "its other name is removed by now");
    let kept = world.dir.path().join("kept");
    fs::hard_link(new.at("mail"), &kept).expect("as the disk has it");
    new.remove("mail");
    fs::rename(kept, new.at("mail")).expect("as the disk has it");
    fs::write(new.at("mail"), "dear").expect("of what was synced it has nothing");
    drop(new);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(&dir.path().join("new")), Vec::<String>::new());
    assert_eq!(read(dir.path().join("old/mail")).as_deref(), Some("dear reader"));
}

fn point(world: &World, directory: &directory::Directory<'_>, target: &str, name: &CStr) {
    let front = Front::of(world, directory);
    naming::making_new(&front, name, || {
        symlink(target, front.path(name)).expect("made");
        Ok(())
    })
    .expect("no error");
}

fn moved_within(world: &World, directory: &directory::Directory<'_>, (name, to): (&CStr, &CStr)) {
    let front = Front::of(world, directory);
    let rename = |_| {
        fs::rename(front.path(name), front.path(to)).expect("renamed");
        Ok(())
    };
    let source = front.at(name);
    naming::moving_within(&front, ((name, source), to), naming::How::Plain, rename).expect("no error");
}

/// A new link is made beside the present one, and renamed over it: what runs next is switched in one step.
fn switched<'w>(world: &'w World) -> directory::Directory<'w> {
    let directory = directory::Directory::of(world);
    point(world, &directory, "releases/1", c"current");
    point(world, &directory, "releases/2", c"next");
    moved_within(world, &directory, (c"next", c"current"));
    assert!(!directory.fsync());
    assert_eq!(*directory.synced.borrow(), Vec::<bool>::new(), "nothing waits for the disk");
    directory
}

#[test]
fn a_symbolic_link_that_takes_the_place_of_another_is_there_again() {
    let world = World::new(16 << 20);
    let directory = switched(&world);
    fs::remove_file(directory.at("current")).expect("removed");
    drop(directory);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(dir.path()), ["current"]);
    assert_eq!(fs::read_link(dir.path().join("current")).expect("a link"), Path::new("releases/2"));
}

/// It can carry no mark that says what it stands for.
#[test]
fn a_symbolic_link_that_an_interrupted_recovery_has_made_is_known_by_what_it_says() {
    for (says, is_known) in [("releases/2", true), ("releases/3", false)] {
        let world = World::new(16 << 20);
        let directory = switched(&world);
        fs::rename(directory.at("current"), directory.at("kept")).expect("it keeps its number");
        symlink(says, directory.at("current")).expect("made");
        fs::remove_file(directory.at("kept")).expect("removed");
        drop(directory);
        let (done, dir, _memory) = world.recover();
        assert_eq!(done.is_ok(), is_known, "what somebody else made stays: {says}");
        assert_eq!(fs::read_link(dir.path().join("current")).expect("a link"), Path::new(says));
    }
}

#[test]
fn a_symbolic_link_that_was_removed_does_not_come_back() {
    let world = World::new(16 << 20);
    let directory = directory::Directory::of(&world);
    point(&world, &directory, "releases/1", c"current");
    let front = Front::of(&world, &directory);
    // The disk has it still when the power goes.
    naming::removing(&front, c"current", |is_logged| is_logged.then_some(()).ok_or(Errno::IO))
        .expect("a record");
    assert_eq!(*directory.synced.borrow(), Vec::<bool>::new());
    drop(directory);
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(dir.path()), Vec::<String>::new());
}
