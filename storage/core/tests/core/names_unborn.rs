//! Directories that are in the log before the disk has them.

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::common::World;
use crate::common::directory::{Directory, handle, names};
use seawall_core::destage::{Destager, Files};
use seawall_core::file::captured::Captured;
use seawall_core::file::{Flag, UNBORN};
use seawall_core::format::{Attributes, Handle};
use seawall_core::pool;
use seawall_core::recover::{
    Directories, Here, Locate, Mode, NameSpace, Options, RealDirectory, RecoverError, Target, Unwritable,
    recover, recover_into,
};
use seawall_core::table::{FileEntry, RootEntry};

/// What the disk has of it when the power goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Has {
    Nothing,
    /// The directory, by its first name and with nothing in it.
    Empty,
    /// The same with a file, empty, and without the directory below.
    Some,
    All,
}

const EACH: [Has; 4] = [Has::Nothing, Has::Empty, Has::Some, Has::All];

impl Has {
    /// `part` is where all of it is.
    fn leave(self, part: &Path) {
        let remove = |below: &str| {
            let path = part.join(below);
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("removed");
        };
        match self {
            Self::All => return,
            Self::Nothing => return remove(""),
            Self::Empty => fs::read_dir(part).expect("there").for_each(|entry| {
                remove(entry.expect("an entry").file_name().to_str().expect("text"));
            }),
            Self::Some => {
                remove("below");
                fs::write(part.join("rows"), "").expect("emptied");
            }
        }
        fs::rename(part, part.with_file_name("tmp")).expect("as it was");
    }
}

fn write(directory: &Directory<'_>, name: &str, text: &str) {
    fs::write(directory.at(name), text).expect("written");
    assert!(directory.sync(name));
}

/// What a program left: `part`, which was made as `tmp`, with rows and a directory below it, all of it synced and in the log alone.
fn part(world: &World) {
    let above = Directory::of(world);
    let part = above.unborn("tmp", &["rows"]);
    write(&part, "rows", "one, two");
    part.make("gone");
    part.remove("gone");
    let below = part.unborn("below", &["columns", "other"]);
    write(&below, "columns", "a, b");
    assert!(!below.fsync() && !part.fsync());
    above.rename("tmp", "part");
    assert!(!above.fsync());
    for directory in [&part, &below] {
        let slot = world.engine.file(directory.name).expect("known");
        assert!(slot.watermark() == UNBORN && slot.state().has(Flag::TRACKED), "the disk was not asked");
    }
}

fn is_there(dir: &Path, how: &str) {
    assert_eq!(names(dir), ["part"], "{how}");
    assert_eq!(names(&dir.join("part")), ["below", "rows"], "{how}");
    assert_eq!(names(&dir.join("part/below")), ["columns", "other"], "{how}");
    assert_eq!(fs::read_to_string(dir.join("part/rows")).expect("read"), "one, two", "{how}");
    assert_eq!(fs::read_to_string(dir.join("part/below/columns")).expect("read"), "a, b", "{how}");
}

// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn a_new_directory_is_there_whatever_the_disk_had_of_it() {
    for has in EACH {
        let world = World::new(16 << 20);
        part(&world);
        has.leave(&world.dir.path().join("part"));
        let (done, dir, _memory) = world.recover();
        done.unwrap_or_else(|error| panic!("{has:?}: {error}"));
        is_there(dir.path(), &format!("{has:?}"));
    }
}

/// Directories that do so many things until the power goes.
struct Cut(Directories, Rc<Cell<usize>>);

struct CutDirectory(RealDirectory, Rc<Cell<usize>>);

impl CutDirectory {
    fn does<R>(&self, act: impl FnOnce(&RealDirectory) -> io::Result<R>) -> io::Result<R> {
        let left = self.1.get().checked_sub(1).ok_or_else(|| io::Error::other("the power goes"))?;
        self.1.set(left);
        act(&self.0)
    }
}

impl NameSpace for CutDirectory {
    fn path(&self) -> PathBuf {
        self.0.path()
    }
    fn look(&self, name: &[u8]) -> Result<Option<Here>, String> {
        self.0.look(name)
    }
    fn is_kept(&self, file: &Handle) -> Result<bool, String> {
        self.0.is_kept(file)
    }
    fn name_of(&self, file: &Handle) -> Result<Option<Vec<u8>>, String> {
        self.0.name_of(file)
    }
    fn is_full(&self, name: &[u8]) -> bool {
        self.0.is_full(name)
    }
    fn make(&self, file: &Handle, attributes: &Attributes, target: Option<&[u8]>) -> io::Result<()> {
        self.does(|real| real.make(file, attributes, target))
    }
    fn keep(&self, file: &Handle, from: &Self, name: &[u8]) -> io::Result<()> {
        self.does(|real| real.keep(file, &from.0, name))
    }
    fn fill(
        &self,
        file: &Handle,
        name: Option<&[u8]>,
        data: &[u8],
        attributes: &Attributes,
    ) -> io::Result<()> {
        self.does(|real| real.fill(file, name, data, attributes))
    }
    fn put(&self, file: &Handle, from: &Self, name: &[u8]) -> io::Result<()> {
        self.does(|real| real.put(file, &from.0, name))
    }
    fn remove(&self, name: &[u8]) -> io::Result<()> {
        self.does(|real| real.remove(name))
    }
    fn sync_file(&self, name: &[u8]) -> io::Result<()> {
        self.does(|real| real.sync_file(name))
    }
    fn sync(&self) -> io::Result<()> {
        self.does(RealDirectory::sync)
    }
    fn clear(&self, files: &[Handle]) -> io::Result<()> {
        self.does(|real| real.clear(files))
    }
    fn inner(&self, file: &Handle, name: Option<&[u8]>) -> io::Result<Self> {
        self.0.inner(file, name).map(|inner| Self(inner, Rc::clone(&self.1)))
    }
    fn end(&self, names: &[&[u8]]) {
        self.0.end(names);
    }
}

impl Locate for Cut {
    type File = File;
    type Names = CutDirectory;

    fn locate(
        &self,
        root: Option<&RootEntry>,
        entry: &FileEntry,
        power_lost: bool,
    ) -> Result<Target<File>, Unwritable> {
        self.0.locate(root, entry, power_lost)
    }

    fn directory(&self, root: Option<&RootEntry>, entry: &FileEntry) -> Result<CutDirectory, Unwritable> {
        self.0.directory(root, entry).map(|real| CutDirectory(real, Rc::clone(&self.1)))
    }

    fn begin(&self) -> Result<(), (PathBuf, io::Error)> {
        self.0.begin()
    }

    fn end(&self) {
        self.0.end();
    }
}

// Holds: internals/SEMANTICS#names-in-the-log
#[test]
fn a_recovery_of_new_directories_is_made_again_wherever_it_was_cut() {
    for has in EACH {
        let mut cuts = 0;
        for most in 0.. {
            let world = World::new(16 << 20);
            part(&world);
            has.leave(&world.dir.path().join("part"));
            let World { dir, memory: _memory, pool, engine, .. } = world;
            let path = pool.path.clone();
            drop((pool, engine));
            let options = Options { mode: Mode::Replay, accept_loss: false };
            let pool = pool::open(&path).expect("open");
            match recover_into(&pool, options, &Cut(Directories::of(&pool), Rc::new(Cell::new(most)))) {
                Ok(_) => break,
                Err(error) => {
                    assert!(error.to_string().contains("the power goes"), "{has:?}, {most}: {error}")
                }
            }
            recover(&pool, options).unwrap_or_else(|error| panic!("{has:?}, {most}: {error}"));
            is_there(dir.path(), &format!("{has:?}, {most}"));
            cuts += 1;
        }
        assert!(cuts > 5, "{has:?}: {cuts}");
    }
}

/// It is moved to its place there, and then nothing else leads to it.
#[test]
fn a_directory_that_moved_into_a_new_one_is_there_wherever_the_recovery_was_cut() {
    for most in 0.. {
        let world = World::new(16 << 20);
        let old = Directory::below(&world, "old");
        old.make("rows");
        let above = Directory::of(&world);
        let part = above.unborn("tmp", &[]);
        let file = handle(&above.at("old"));
        let (source, target) = (above.turn(), part.turn());
        assert!(source.log_move(&target, (b"old", b"below"), file, None));
        target.finish();
        source.finish();
        // What the disk has is what was there before.
        fs::remove_dir(above.at("tmp")).expect("removed");
        drop((old, above, part));
        let World { dir, memory: _memory, pool, engine, .. } = world;
        let path = pool.path.clone();
        drop((pool, engine));
        let options = Options { mode: Mode::Replay, accept_loss: false };
        let pool = pool::open(&path).expect("open");
        let done = recover_into(&pool, options, &Cut(Directories::of(&pool), Rc::new(Cell::new(most))));
        recover(&pool, options).unwrap_or_else(|error| panic!("{most}: {error}"));
        assert_eq!(names(dir.path()), ["tmp"], "{most}");
        assert_eq!(names(&dir.path().join("tmp")), ["below"], "{most}");
        assert_eq!(names(&dir.path().join("tmp/below")), ["rows"], "{most}");
        if done.is_ok() {
            return assert!(most > 3, "{most}");
        }
    }
}

/// A program removed what it had just made; or it is somebody else's doing that the disk has nothing.
#[test]
fn a_new_directory_that_was_removed_is_not_made_again() {
    let world = World::new(16 << 20);
    let above = Directory::of(&world);
    let part = above.unborn("tmp", &["rows"]);
    write(&part, "rows", "one, two");
    part.remove("rows");
    part.to_the_disk();
    above.remove_directory("tmp");
    assert!(!above.fsync());
    drop((part, above));
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

/// Of these alone.
struct Of<'a, 'w> {
    these: &'a [&'a Directory<'w>],
    /// Syncs of the file system, and of one of them.
    around: usize,
    alone: usize,
}

impl<'a, 'w> Of<'a, 'w> {
    fn these(these: &'a [&'a Directory<'w>]) -> Self {
        Self { these, around: 0, alone: 0 }
    }
}

impl Files for Of<'_, '_> {
    fn descriptor(&mut self, slot: u32) -> io::Result<std::os::fd::BorrowedFd<'_>> {
        use std::os::fd::AsFd;
        let found = self.these.iter().find(|directory| directory.name.slot == slot);
        found.map(|directory| directory.file.as_fd()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn is_due(&mut self, slot: u32, _watermark: u64) -> bool {
        self.these.iter().any(|directory| directory.name.slot == slot)
    }

    fn sync_directory(&mut self, _slot: u32, _files: &[Captured]) -> io::Result<()> {
        self.alone += 1;
        Ok(())
    }

    fn sync_around(&mut self, _slot: u32) -> io::Result<()> {
        self.around += 1;
        if self.around > 1 { Err(io::Error::other("whose it is nobody knows")) } else { Ok(()) }
    }
}

/// What was retired is not in the log any more: without it the directory would be another one.
#[test]
fn a_new_directory_that_the_disk_had_is_not_made_again_without_what_was_retired() {
    let world = World::new(16 << 20);
    let above = Directory::of(&world);
    let part = above.unborn("tmp", &["rows"]);
    assert_eq!(Destager::new(&world.engine, world.who(7)).round(&mut Of::these(&[&part])).synced, 1);
    assert!(world.engine.file(part.name).expect("known").watermark() > UNBORN);
    write(&part, "rows", "one, two");
    fs::remove_dir_all(above.at("tmp")).expect("removed by a stranger");
    drop((part, above));
    let (done, _dir, _memory) = world.recover();
    assert!(matches!(done, Err(RecoverError::Unresolved(_))), "{done:?}");
}

/// The names that were there before it was in the log need records, or a sync.
#[test]
fn a_new_directory_whose_names_cannot_be_recorded_is_the_disks() {
    let world = World::new(16 << 20);
    let above = Directory::of(&world);
    let part = above.unrecorded("tmp");
    let slot = world.engine.file(part.name).expect("known");
    assert_eq!((part.synced.borrow().len(), slot.state().has(Flag::TRACKED)), (1, false));
    assert!(slot.watermark() > UNBORN, "the disk has it");
    assert!(part.fsync(), "and its own sync is real");
}

/// One by one they would take longer than they were made in.
#[test]
fn many_directories_are_destaged_by_one_sync() {
    let world = World::new(16 << 20);
    let above = Directory::of(&world);
    let parts: Vec<Directory<'_>> = (0..10).map(|i| above.unborn(&format!("part-{i}"), &["rows"])).collect();
    let these: Vec<&Directory<'_>> = parts.iter().collect();
    let mut files = Of::these(&these);
    let mut destager = Destager::new(&world.engine, world.who(7));
    assert_eq!(destager.round(&mut files).synced, 10);
    assert_eq!((files.around, files.alone), (1, 0));
    for part in &parts {
        let slot = world.engine.file(part.name).expect("known");
        assert!(!slot.is_dirty() && !slot.state().has(Flag::UNBORN) && slot.state().has(Flag::TRACKED));
        part.make("more");
    }
    // Whose error it is shows when each is synced alone.
    assert_eq!(destager.round(&mut files).synced, 10);
    assert_eq!((files.around, files.alone), (2, 10));
    assert_eq!(destager.round(&mut Of::these(&these)).synced, 0);
    parts[..3].iter().for_each(|part| drop(part.make("last")));
    let mut few = Of::these(&these);
    assert_eq!(destager.round(&mut few).synced, 3);
    assert_eq!((few.around, few.alone), (0, 3));
}

#[test]
fn a_directory_is_as_it_was_made_until_a_name_is_taken_away_or_its_mode_changes() {
    let world = World::new(16 << 20);
    let (engine, inode) = (&world.engine, (8, 11));
    let handle = |n: u8| Handle::new(1, &[n; 8]).expect("short");
    let attributes = Attributes { mode: 0o750, uid: 1, ..Attributes::default() };
    let is_as_made = |n: u8, attributes: &Attributes| engine.is_as_made(inode, &handle(n), attributes);
    assert!(!engine.was_made(inode) && !is_as_made(1, &attributes));
    engine.directory_is_made(inode, &handle(1), &attributes);
    assert!(engine.was_made(inode) && is_as_made(1, &attributes));
    assert!(!is_as_made(2, &attributes), "another one by this inode");
    for other in [Attributes { mode: 0o700, ..attributes }, Attributes { uid: 2, ..attributes }] {
        assert!(!is_as_made(1, &other));
    }
    engine.shrinks((8, 12));
    assert!(engine.grew(inode));
    engine.shrinks(inode);
    assert!(engine.was_made(inode) && !engine.grew(inode) && !is_as_made(1, &attributes));
    engine.directory_is_made(inode, &handle(1), &attributes);
    engine.was_synced(inode);
    assert!(!engine.was_made(inode));
}
