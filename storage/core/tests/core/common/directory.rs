//! A directory in its own log, changed as a front changes it.

use std::cell::RefCell;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::World;
use seawall_core::file::{Begins, Flag, Newcomer};
use seawall_core::format::{Across, Attributes, Handle, NameChange, Replaced};
use seawall_core::{Errno, FileRef, Place, Registered, Turn, certain, directory};
use seawall_media::identity;
use seawall_stats::Class;

/// One.
pub struct Directory<'w> {
    world: &'w World,
    pub file: File,
    pub name: FileRef,
    path: RefCell<PathBuf>,
    /// Real syncs of it, and whether with all files in it.
    pub synced: RefCell<Vec<bool>>,
    /// What somebody makes there during the next one.
    pub meanwhile: RefCell<Option<PathBuf>>,
}

impl Place for Directory<'_> {
    fn changed_before(&self) -> u64 {
        self.changed()
    }

    fn changed(&self) -> u64 {
        directory::changed(self.file.as_fd())
    }

    fn sync(&self, with_files: bool) -> Result<(), Errno> {
        self.synced.borrow_mut().push(with_files);
        if let Some(path) = self.meanwhile.take() {
            std::thread::sleep(Duration::from_millis(20));
            fs::write(path, "").expect("made");
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Errno> {
        certain::check(self.file.as_fd())
    }
}

pub fn handle(path: &Path) -> Handle {
    let looking = rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
    let id = identity(File::from(looking.expect("open"))).expect("an identity");
    Handle::new(id.kind, &id.handle).expect("a short handle")
}

impl<'w> Directory<'w> {
    /// The world's, in the log.
    pub fn of(world: &'w World) -> Self {
        Self::at_path(world, world.dir.path().to_owned())
    }

    /// Another one below it.
    pub fn below(world: &'w World, name: &str) -> Self {
        let path = world.dir.path().join(name);
        fs::create_dir_all(&path).expect("made");
        Self::at_path(world, path)
    }

    /// A new one in this one, in the log before the disk has it, with files of these names.
    pub fn unborn(&self, name: &str, files: &[&str]) -> Self {
        let path = self.make_directory(name);
        files.iter().for_each(|file| fs::write(path.join(file), "").expect("made"));
        let (registered, directory) = Self::registered(self.world, path, Begins::Unborn);
        let record = |turn: &Turn<'_, Self>| {
            files.iter().all(|file| turn.log(&made(file.as_bytes(), &directory.at(file))))
        };
        let admitted = registered.admit_with_names(self.world.who(0), &directory, record);
        assert_eq!(admitted, Some(directory.name), "room to be found");
        directory
    }

    /// The same, whose names get no records.
    pub fn unrecorded(&self, name: &str) -> Self {
        let path = self.make_directory(name);
        let (registered, directory) = Self::registered(self.world, path, Begins::Unborn);
        registered.admit_with_names(self.world.who(0), &directory, |_| false).expect("room to be found");
        directory
    }

    fn at_path(world: &'w World, path: PathBuf) -> Self {
        let (registered, directory) = Self::registered(world, path, Begins::Outside);
        registered.admit(world.who(0), || Ok(())).expect("room to be found");
        directory.fsync();
        assert!(world.engine.state(directory.name).has(Flag::TRACKED));
        directory.synced.borrow_mut().clear();
        directory
    }

    fn registered(world: &'w World, path: PathBuf, begins: Begins) -> (Registered<'w>, Self) {
        let file = File::open(&path).expect("open");
        let meta = file.metadata().expect("its inode");
        let registered = world.engine.register(&Newcomer {
            root: world.root,
            identity: &identity(&file).expect("an identity"),
            hint: path.strip_prefix(world.dir.path()).expect("below"),
            inode: (meta.dev(), meta.ino()),
            class: Class::Other,
            begins,
            is_named_by_directory: true,
            is_directory: true,
        });
        let registered = registered.expect("a slot");
        let (synced, meanwhile) = (RefCell::default(), RefCell::default());
        let name = registered.file();
        (registered, Self { world, file, name, path: RefCell::new(path), synced, meanwhile })
    }

    /// mkdir(2).
    pub fn make_directory(&self, name: &str) -> PathBuf {
        let (turn, path) = (self.turn(), self.at(name));
        fs::create_dir(&path).expect("made");
        assert!(turn.log(&made(name.as_bytes(), &path)));
        turn.finish();
        path
    }

    /// It is there now.
    pub fn moved_to(&self, path: PathBuf) {
        self.path.replace(path);
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.path.borrow().join(name)
    }

    /// st_dev and st_ino.
    pub fn inode(&self) -> (u64, u64) {
        let meta = self.file.metadata().expect("its inode");
        (meta.dev(), meta.ino())
    }

    pub fn turn(&self) -> Turn<'_, Self> {
        self.world.engine.enter_directory(self.world.who(0), self.name, self)
    }

    pub fn make(&self, name: &str) -> PathBuf {
        let (turn, path) = (self.turn(), self.at(name));
        fs::write(&path, "").expect("made");
        assert!(turn.log(&made(name.as_bytes(), &path)));
        turn.finish();
        path
    }

    pub fn remove(&self, name: &str) {
        let (turn, path) = (self.turn(), self.at(name));
        assert!(turn.log(&NameChange::Gone {
            name: name.as_bytes(),
            file: handle(&path),
            has_others: false
        }));
        fs::remove_file(path).expect("removed");
        turn.finish();
    }

    /// rmdir(2).
    pub fn remove_directory(&self, name: &str) {
        let (turn, path) = (self.turn(), self.at(name));
        let gone = NameChange::Gone { name: name.as_bytes(), file: handle(&path), has_others: false };
        assert!(turn.log(&gone));
        fs::remove_dir(path).expect("removed");
        turn.finish();
    }

    pub fn rename(&self, name: &str, to: &str) {
        let turn = self.turn();
        let over = self.at(to).exists().then(|| Replaced { file: handle(&self.at(to)), has_others: false });
        let file = handle(&self.at(name));
        assert!(turn.log(&NameChange::Moved {
            name: name.as_bytes(),
            to: to.as_bytes(),
            file,
            over,
            exchanged: false,
            across: Across::No,
        }));
        fs::rename(self.at(name), self.at(to)).expect("renamed");
        turn.finish();
    }

    /// Brings it to the disk, as a sync that the log had to leave to it does.
    pub fn to_the_disk(&self) {
        let turn = self.turn();
        turn.leave();
        turn.finish();
    }

    /// False: it is to be synced for real.
    pub fn sync(&self, name: &str) -> bool {
        let (turn, path) = (self.turn(), self.at(name));
        let (meta, data) = (path.metadata().expect("there"), fs::read(&path).expect("read"));
        let (file, attributes) = (handle(&path), attributes(&path));
        let change = NameChange::Content { name: name.as_bytes(), file, attributes, data: &data };
        let is_captured = turn.capture((meta.dev(), meta.ino()), &file, |record| record(&change));
        turn.finish();
        is_captured
    }

    /// True if it had to be real.
    pub fn fsync(&self) -> bool {
        let before = self.synced.borrow().len();
        let done = self.world.engine.sync_directory_names(self.world.who(0), self.name, self);
        done.expect("it is known").expect("no error");
        self.synced.borrow().len() > before
    }
}

/// The record of a new file or directory.
fn made<'n>(name: &'n [u8], path: &Path) -> NameChange<'n> {
    let mut attributes = attributes(path);
    if path.is_dir() {
        attributes.mode |= Attributes::DIRECTORY;
    }
    NameChange::Made { name, file: handle(path), attributes }
}

pub fn attributes(path: &Path) -> Attributes {
    let meta = path.symlink_metadata().expect("there");
    Attributes {
        mode: meta.mode() & 0o7777,
        uid: meta.uid(),
        gid: meta.gid(),
        modified: (meta.mtime(), meta.mtime_nsec() as u32),
    }
}

/// The names in a directory.
pub fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
