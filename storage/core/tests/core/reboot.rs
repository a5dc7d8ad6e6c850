//! Recovery after a restart of the machine, as far as a test can have one: the pool says another boot id, and
//! the files are as old as the disk left them.

use std::cell::Cell;
use std::fs::{File, FileTimes};
use std::io;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use crate::common::{Managed, World, roll_back};
use seawall_core::pool::{self, Pool};
use seawall_core::recover::{
    Directories, Locate, Mode, Options, RealDirectory, RecoverError, Sink, Target, Unwritable, recover,
    recover_into,
};
use seawall_core::table::{FileEntry, RootEntry};

const AUTO: Options = Options { mode: Mode::Auto, accept_loss: false };

/// The machine restarts: caches are lost, the boot is another one. Returns the pool and what keeps it.
fn restart(world: World, m: &Managed) -> (Pool, impl Sized) {
    let World { dir, memory, pool, engine, .. } = world;
    let path = pool.path.clone();
    drop((pool, engine));
    roll_back(m, &[]);
    m.file.set_times(FileTimes::new().set_modified(UNIX_EPOCH)).expect("an old file");
    let mut pool = pool::open(&path).expect("open");
    pool.superblock.boot = [7; 16];
    let Pool { superblock, region, .. } = &mut pool;
    superblock.write(region);
    (pool, (dir, memory))
}

fn logged() -> (World, Managed) {
    let world = World::new(16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    for i in 0..10u8 {
        world.pwrite(&m, 0, &[i + 1; 3000], u64::from(i) * 3000);
    }
    (world, m)
}

// Holds: R3
#[test]
fn a_file_that_was_changed_after_the_restart_is_refused() {
    let (world, m) = logged();
    let (pool, _kept) = restart(world, &m);
    m.file.set_times(FileTimes::new().set_modified(std::time::SystemTime::now())).expect("changed");
    let refused = recover(&pool, AUTO).expect_err("refused");
    assert!(matches!(refused, RecoverError::Unresolved(_)), "{refused}");
    assert!(refused.to_string().contains("changed since the machine started"), "{refused}");
    let forced = Options { accept_loss: true, ..AUTO };
    assert_eq!(recover(&pool, forced).expect("given up").given_up.len(), 1);
}

/// The pool's owner may not use a recovery as root to write what belongs to others, as through a hard link.
#[test]
fn a_file_of_another_owner_is_refused() {
    let world = World::registered_by(rustix::process::geteuid().as_raw() + 1, 16 << 20);
    let m = world.manage("wal");
    world.fsync(&m);
    world.pwrite(&m, 0, b"not for this file", 0);
    let (pool, _kept) = restart(world, &m);
    let refused = recover(&pool, AUTO).expect_err("refused");
    assert!(refused.to_string().contains("it belongs to user"), "{refused}");
}

/// A machine without a clock of its own comes up in the past. Giving the records up would be the wrong advice.
#[test]
fn regression_a_clock_that_was_set_back_is_named() {
    let (world, m) = logged();
    let (pool, _kept) = restart(world, &m);
    let tomorrow = std::time::SystemTime::now() + std::time::Duration::from_secs(86_400);
    m.file.set_times(FileTimes::new().set_modified(tomorrow)).expect("a file of the future");
    let refused = recover(&pool, AUTO).expect_err("refused");
    assert!(refused.to_string().contains("the clock has been set back"), "{refused}");
    m.file.set_times(FileTimes::new().set_modified(UNIX_EPOCH)).expect("an old file");
    assert_eq!(recover(&pool, AUTO).expect("recovered").live, 10);
}

/// A disk that is full after some writes.
struct Full {
    directories: Directories,
    writes: Cell<u32>,
}

struct FullFile<'a>(File, &'a Cell<u32>);

impl Sink for FullFile<'_> {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let left = self.1.get().checked_sub(1).ok_or_else(|| io::Error::from(io::ErrorKind::StorageFull))?;
        self.1.set(left);
        Sink::write_all_at(&self.0, bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Sink::set_len(&self.0, len)
    }

    fn sync_all(&self) -> io::Result<()> {
        Sink::sync_all(&self.0)
    }
}

impl<'a> Locate for &'a Full {
    type File = FullFile<'a>;
    type Names = RealDirectory;

    fn directory(&self, _: Option<&RootEntry>, _: &FileEntry) -> Result<RealDirectory, Unwritable> {
        Err("no directory is in this log".to_owned().into())
    }

    fn locate(
        &self,
        root: Option<&RootEntry>,
        entry: &FileEntry,
        power_lost: bool,
    ) -> Result<Target<FullFile<'a>>, Unwritable> {
        let Target { file, path } = self.directories.locate(root, entry, power_lost)?;
        Ok(Target { file: FullFile(file, &self.writes), path })
    }

    fn begin(&self) -> Result<(), (PathBuf, io::Error)> {
        self.directories.begin()
    }

    fn end(&self) {
        self.directories.end();
    }
}

/// Its own writes made the second attempt refuse, and offer to give the records up.
// Holds: K9
#[test]
fn regression_a_replay_that_was_cut_short_is_made_again() {
    let (world, m) = logged();
    let expected = std::fs::read(&m.path).expect("read");
    let (pool, _kept) = restart(world, &m);
    let full = Full { directories: Directories::of(&pool), writes: Cell::new(4) };
    let failed = recover_into(&pool, AUTO, &&full).expect_err("a full disk");
    assert!(matches!(failed, RecoverError::Io { .. }), "{failed}");
    assert_ne!(std::fs::read(&m.path).expect("read"), expected, "half of it is there");
    let report = recover(&pool, AUTO).expect("the second attempt");
    assert_eq!((report.live, report.given_up.len()), (10, 0));
    assert_eq!(std::fs::read(&m.path).expect("read"), expected);
    // The excuse ended with the recovery.
    assert!(!std::fs::exists(format!("/dev/shm/seawall-{:032x}.replay", pool.uuid())).expect("asked"));
}
