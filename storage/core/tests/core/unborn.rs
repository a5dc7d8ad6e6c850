//! Files whose every write is logged, of which the disk may know nothing: their directory's log has their names.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use crate::common::directory::{Directory, handle, names};
use crate::common::{Managed, World};
use seawall_core::destage::{Destager, Files};
use seawall_core::file::Begins;
use seawall_core::pool;
use seawall_core::recover::{
    Directories, Locate, Mode, Options, RealDirectory, RecoverError, Sink, Target, Unwritable, recover,
    recover_into,
};
use seawall_core::table::{FileEntry, RootEntry};

/// What the disk has of the file when the power goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Has {
    Nothing,
    /// Its inode and its name, and nothing in it.
    Empty,
    All,
}

const EACH: [Has; 3] = [Has::Nothing, Has::Empty, Has::All];

impl Has {
    fn leave(self, path: &Path) {
        match self {
            Self::Nothing => fs::remove_file(path).expect("removed"),
            Self::Empty => fs::write(path, "").expect("emptied"),
            Self::All => {}
        }
    }
}

/// A table in a directory in the log, with two writes that were acknowledged.
fn table<'w>(world: &'w World, directory: &Directory<'w>, name: &str) -> Managed {
    directory.make(name);
    let m = world.manage_as(&format!("base/{name}"), Begins::InLogWithName, true);
    assert_eq!(world.slot(&m).watermark(), seawall_core::file::UNBORN);
    world.pwrite(&m, 0, b"one page", 0);
    world.pwrite(&m, 0, b"another page", 8192);
    assert!(!world.fsync(&m), "all of it is in the log");
    m
}

fn expected() -> Vec<u8> {
    let mut all = vec![0; 8192];
    all[..8].copy_from_slice(b"one page");
    all.extend(b"another page");
    all
}

#[test]
fn what_was_written_is_there_whatever_the_disk_had_of_the_file() {
    for has in EACH {
        for is_on_disk in [false, true] {
            let world = if is_on_disk { World::on_block(16 << 20) } else { World::new(16 << 20) };
            let base = Directory::below(&world, "base");
            let m = table(&world, &base, "1");
            has.leave(&m.path);
            drop((m, base));
            let (done, dir, _memory) = world.recover();
            done.unwrap_or_else(|error| panic!("{has:?}, {is_on_disk}: {error}"));
            assert_eq!(fs::read(dir.path().join("base/1")).expect("read"), expected(), "{has:?}");
            assert_eq!(names(&dir.path().join("base")), ["1"], "{has:?}");
        }
    }
}

/// Its program wrote it around the log, and nobody had synced it by then.
#[test]
fn what_it_had_when_it_was_registered_is_there_too() {
    for has in EACH {
        for is_on_disk in [false, true] {
            let world = if is_on_disk { World::on_block(16 << 20) } else { World::new(16 << 20) };
            let base = Directory::below(&world, "base");
            base.make("1");
            let mut content: Vec<u8> = (0..20_000).map(|i| (i / 7) as u8).collect();
            fs::write(base.at("1"), &content).expect("written");
            let m = world.manage_as("base/1", Begins::InLogWithName, true);
            world.pwrite(&m, 0, b"another page", 8192);
            content[8192..][..12].copy_from_slice(b"another page");
            assert!(!world.fsync(&m), "all of it is in the log");
            has.leave(&m.path);
            drop((m, base));
            let (done, dir, _memory) = world.recover();
            done.unwrap_or_else(|error| panic!("{has:?}, {is_on_disk}: {error}"));
            assert_eq!(fs::read(dir.path().join("base/1")).expect("read"), content, "{has:?}");
        }
    }
}

/// A file that the log has no room for is synced instead, and stays outside.
#[test]
fn one_with_more_than_the_log_has_room_for_is_synced() {
    let world = World::new(16 << 20);
    let base = Directory::below(&world, "base");
    base.make("1");
    let content = vec![7; 32 << 20];
    fs::write(base.at("1"), &content).expect("written");
    let m = world.manage_as("base/1", Begins::InLogWithName, true);
    let slot = world.slot(&m);
    assert!(!slot.state().has(seawall_core::file::Flag::TRACKED));
    assert!(!world.engine.is_dirty(m.name), "its records are retired");
    assert!(slot.watermark() > seawall_core::file::UNBORN, "the disk has it");
    drop((m, base));
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert!(fs::read(dir.path().join("base/1")).expect("read") == content);
}

#[test]
fn it_has_the_name_that_it_got_in_the_end() {
    for has in EACH {
        let world = World::new(16 << 20);
        let base = Directory::below(&world, "base");
        let m = table(&world, &base, "1");
        base.rename("1", "2");
        has.leave(&base.at("2"));
        drop((m, base));
        let (done, dir, _memory) = world.recover();
        done.expect("a recovery");
        assert_eq!(names(&dir.path().join("base")), ["2"], "{has:?}");
        assert_eq!(fs::read(dir.path().join("base/2")).expect("read"), expected(), "{has:?}");
    }
}

/// Its records are there still, and count no more. Nothing was synced for that.
#[test]
fn one_that_was_removed_stays_removed() {
    for is_over in [false, true] {
        for is_back in [false, true] {
            let world = World::new(16 << 20);
            let base = Directory::below(&world, "base");
            let m = table(&world, &base, "1");
            let out = world.engine.removal(world.who(1), m.name);
            let kept = world.dir.path().join("kept");
            fs::hard_link(&m.path, &kept).expect("another name");
            base.remove("1");
            if is_over {
                out.unlinked();
                assert!(!world.engine.is_dirty(m.name));
            } else {
                // The power goes before the program hears of it.
                std::mem::forget(out);
            }
            match is_back {
                // The file system has not kept the removal.
                true => fs::rename(&kept, &m.path).expect("renamed"),
                false => fs::remove_file(&kept).expect("removed"),
            }
            drop((m, base));
            let (done, dir, _memory) = world.recover();
            done.unwrap_or_else(|error| panic!("{is_over}, {is_back}: {error}"));
            assert_eq!(names(&dir.path().join("base")), Vec::<String>::new(), "{is_over}, {is_back}");
        }
    }
}

/// What replaced it is in the log, so its own records count no more either.
#[test]
fn one_that_was_replaced_does_not_come_back() {
    let world = World::new(16 << 20);
    let base = Directory::below(&world, "base");
    let (old, new) = (table(&world, &base, "map"), table(&world, &base, "map.new"));
    world.pwrite(&new, 0, b"the new one", 0);
    base.rename("map.new", "map");
    fs::remove_file(base.at("map")).expect("the disk has neither");
    drop((old, new, base));
    let (done, dir, _memory) = world.recover();
    done.expect("a recovery");
    assert_eq!(names(&dir.path().join("base")), ["map"]);
    assert!(fs::read(dir.path().join("base/map")).expect("read").starts_with(b"the new one"));
}

/// Nothing else is destaged.
struct Alone<'a>(&'a Managed);

impl Files for Alone<'_> {
    fn descriptor(&mut self, _slot: u32) -> io::Result<BorrowedFd<'_>> {
        Ok(self.0.file.as_fd())
    }

    fn is_due(&mut self, slot: u32, _watermark: u64) -> bool {
        slot == self.0.name.slot
    }
}

/// It was on the disk, so some of what it had is in the log no more.
#[test]
fn one_that_the_disk_had_is_not_made_again_without_what_was_retired() {
    for is_destaged in [true, false] {
        let world = World::new(16 << 20);
        let base = Directory::below(&world, "base");
        let m = table(&world, &base, "1");
        if is_destaged {
            assert_eq!(Destager::new(&world.engine, world.who(7)).round(&mut Alone(&m)).synced, 1);
        } else {
            // By a change that the log has no record for.
            world.engine.take_out(world.who(0), m.name, || Ok(())).finish(|| Ok(()));
        }
        assert!(world.slot(&m).watermark() > seawall_core::file::UNBORN);
        world.pwrite(&m, 0, b"a third page", 16384);
        fs::remove_file(&m.path).expect("removed by a stranger");
        drop((m, base));
        let (done, _dir, _memory) = world.recover();
        let refused = matches!(done, Err(RecoverError::Unresolved(_)));
        assert!(refused, "{is_destaged}: {done:?}");
    }
}

/// A file that never had a record, but was synced for real: it is on the disk.
#[test]
fn one_that_left_the_log_without_records_is_on_the_disk() {
    let world = World::new(16 << 20);
    let base = Directory::below(&world, "base");
    base.make("1");
    let m = world.manage_as("base/1", Begins::InLogWithName, true);
    let mut synced = 0;
    let sync = || {
        synced += 1;
        Ok(())
    };
    world.engine.take_out(world.who(0), m.name, sync).finish(|| Ok(()));
    assert_eq!(synced, 1, "before anything changes it that no record says");
    assert!(world.slot(&m).watermark() > seawall_core::file::UNBORN);
}

/// Fails to sync what it has written.
struct Cut(Directories);

struct CutFile(File);

impl Sink for CutFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        Sink::write_all_at(&self.0, bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Sink::set_len(&self.0, len)
    }

    fn sync_all(&self) -> io::Result<()> {
        Err(io::Error::other("the power goes"))
    }
}

impl Locate for Cut {
    type File = CutFile;
    type Names = RealDirectory;

    fn locate(
        &self,
        root: Option<&RootEntry>,
        entry: &FileEntry,
        power_lost: bool,
    ) -> Result<Target<CutFile>, Unwritable> {
        let Target { file, path } = self.0.locate(root, entry, power_lost)?;
        Ok(Target { file: CutFile(file), path })
    }

    fn directory(&self, root: Option<&RootEntry>, entry: &FileEntry) -> Result<RealDirectory, Unwritable> {
        self.0.directory(root, entry)
    }

    fn open_again(&self, names: &RealDirectory, name: &[u8]) -> io::Result<CutFile> {
        self.0.open_again(names, name).map(CutFile)
    }

    fn begin(&self) -> Result<(), (PathBuf, io::Error)> {
        self.0.begin()
    }

    fn end(&self) {
        self.0.end();
    }
}

/// The second run finds a file that stands for the one that the log knows.
#[test]
fn a_recovery_that_was_cut_is_made_again() {
    let world = World::new(16 << 20);
    let base = Directory::below(&world, "base");
    let m = table(&world, &base, "1");
    Has::Nothing.leave(&m.path);
    drop((m, base));
    let World { dir, memory: _memory, pool, engine, .. } = world;
    let path = pool.path.clone();
    drop((pool, engine));
    let options = Options { mode: Mode::Replay, accept_loss: false };
    let pool = pool::open(&path).expect("open");
    let cut = recover_into(&pool, options, &Cut(Directories::of(&pool)));
    assert!(matches!(cut, Err(RecoverError::Io { doing: "sync", .. })), "{cut:?}");
    let made = handle(&dir.path().join("base/1"));
    fs::write(dir.path().join("base/1"), "what the disk kept of it").expect("written");
    recover(&pool, options).expect("a recovery");
    assert_eq!(fs::read(dir.path().join("base/1")).expect("read")[8192..], *b"another page");
    assert_eq!(handle(&dir.path().join("base/1")), made, "no third one");
}
