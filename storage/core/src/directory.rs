//! An fsync of a directory that has not changed since its last sync: there is nothing left to do.
//!
//! A database that opens its journal anew for every transaction syncs the directory every time (SQLite in the modes
//! truncate and persist). Linux then commits nothing, and still has the disk flush its cache.
//!
//! Input: a descriptor of the directory, and the real sync. Output: the real sync was made and succeeded, or an earlier
//! one covers everything there is. The directory's change time shows it: any name made, removed or replaced in the
//! directory, a rename of the directory, and new attributes set that time (inode_set_ctime_current() in ext4 and XFS;
//! other file systems are not trusted), whichever process makes the change, and nobody can choose its value. It is only
//! as fine as the kernel's tick: of two changes that close together the second may not show. So a sync counts only if
//! the directory had stayed unchanged for longer than a tick ([`SETTLED_NS`]) when it began: any change from then on
//! has a later time. And it is an fsync, whatever the caller asked for: what fdatasync leaves out of a directory is up
//! to the file system.
//!
//! What may not be trusted: a wall clock that is set back. To be missed, a change would have to fall on the very
//! nanosecond of the former one.
//!
//! Not handled here: files, whose content the log stands for (`engine`).

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::fs::{FileType, Stat, fstat, fstatfs};
use rustix::io::Errno;
use seawall_media::{magic, sim};
use seawall_stats::{Clock, ticks};

use crate::Scope;

/// A tick is 10 ms at most (CONFIG_HZ=100).
const SETTLED_NS: u64 = 50_000_000;
/// Directories that are remembered.
const ROWS: usize = 8;

/// Which directories were synced as they are. One for a process.
pub struct Synced([Row; ROWS]);

struct Row {
    /// A thread works on it. A thread that finds it taken (a child of fork may find it so for ever) makes a real sync.
    is_taken: AtomicBool,
    dev: AtomicU64,
    /// 0: no directory.
    ino: AtomicU64,
    changed: AtomicU64,
    /// When it was first seen in this state, in ticks.
    seen: AtomicU64,
    is_synced: AtomicBool,
}

/// The state of a directory at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// st_dev.
    pub dev: u64,
    /// st_ino.
    pub ino: u64,
    /// st_ctime, in nanoseconds since the epoch.
    pub changed: u64,
}

/// What a sync has to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    Nothing,
    /// A sync that may be the last one.
    Last,
    /// A sync: a change right behind it might not show.
    NotLast,
}

impl Synced {
    /// No directory was synced yet.
    pub const fn new() -> Self {
        Self(
            [const {
                Row {
                    is_taken: AtomicBool::new(false),
                    dev: AtomicU64::new(0),
                    ino: AtomicU64::new(0),
                    changed: AtomicU64::new(0),
                    seen: AtomicU64::new(0),
                    is_synced: AtomicBool::new(false),
                }
            }; ROWS],
        )
    }

    /// fsync(2) or fdatasync(2) of whatever `fd` is: calls `real`, unless it is a directory with nothing left to do.
    /// `real` may get a wider scope than the caller wants.
    ///
    /// # Errors
    /// The error of `real`. The next sync is real again then.
    pub fn sync(
        &self,
        clock: Clock,
        fd: BorrowedFd<'_>,
        scope: Scope,
        real: impl FnOnce(Scope) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let is_directory = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        match fstat(fd).ok().filter(is_directory) {
            Some(stat) => self.sync_as(clock, (fd, State::of(&stat)), scope, real),
            None => real(scope),
        }
    }

    /// The same for a descriptor that is known to be a directory, in this state, which was read just now.
    ///
    /// # Errors
    /// As for [`sync`](Self::sync).
    pub fn sync_as(
        &self,
        clock: Clock,
        (fd, state): (BorrowedFd<'_>, State),
        scope: Scope,
        real: impl FnOnce(Scope) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let before = ticks();
        let row = &self.0[state.ino as usize % ROWS];
        let due = row.alone(|| row.due(state, clock, before)).unwrap_or(Due::NotLast);
        if due == Due::Nothing {
            return Ok(());
        }
        let done = real(if due == Due::Last { Scope::Whole } else { scope });
        if due == Due::Last && done.is_ok() && is_believed(fd) {
            // Another thread may have seen it change meanwhile.
            row.alone(|| row.is_synced.store(row.state() == state, Relaxed));
        }
        done
    }
}

impl Default for Synced {
    fn default() -> Self {
        Self::new()
    }
}

impl Row {
    /// `None` if another thread has it.
    fn alone<R>(&self, op: impl FnOnce() -> R) -> Option<R> {
        self.is_taken.compare_exchange(false, true, Acquire, Relaxed).ok()?;
        let done = op();
        self.is_taken.store(false, Release);
        Some(done)
    }

    fn due(&self, state: State, clock: Clock, now: u64) -> Due {
        if self.state() != state {
            self.see(state);
            return Due::NotLast;
        }
        if self.is_synced.load(Relaxed) {
            return Due::Nothing;
        }
        // Another thread may have seen it a moment later.
        let since = (now.wrapping_sub(self.seen.load(Relaxed)) as i64).max(0) as u64;
        if clock.ns(since) > SETTLED_NS { Due::Last } else { Due::NotLast }
    }

    fn state(&self) -> State {
        State {
            dev: self.dev.load(Relaxed),
            ino: self.ino.load(Relaxed),
            changed: self.changed.load(Relaxed),
        }
    }

    fn see(&self, state: State) {
        self.dev.store(state.dev, Relaxed);
        self.ino.store(state.ino, Relaxed);
        self.changed.store(state.changed, Relaxed);
        self.is_synced.store(false, Relaxed);
        self.seen.store(ticks(), Relaxed);
    }
}

impl State {
    fn of(stat: &Stat) -> Self {
        Self { dev: stat.st_dev, ino: stat.st_ino, changed: changed_of(stat) }
    }
}

/// The change time of an open file or directory, in nanoseconds since the epoch; 0 if it cannot be read.
pub fn changed(fd: BorrowedFd<'_>) -> u64 {
    let simulated = sim::changed(fd.as_raw_fd());
    simulated.unwrap_or_else(|| fstat(fd).map_or(0, |stat| changed_of(&stat)))
}

/// The same from a `stat` that was made already.
pub fn changed_of(stat: &Stat) -> u64 {
    (stat.st_ctime as u64).wrapping_mul(1_000_000_000).wrapping_add(stat.st_ctime_nsec)
}

fn is_believed(fd: BorrowedFd<'_>) -> bool {
    fstatfs(fd).is_ok_and(|fs| magic::has_believed_directories(fs.f_type as u64))
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use std::cell::Cell;
    use std::fs::{self, File, Permissions};
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::sync::OnceLock;
    use std::time::Duration;

    use super::*;

    /// `None` on a file system that is not trusted.
    fn place() -> Option<tempfile::TempDir> {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let is_believed = is_believed(File::open(&dir).expect("open").as_fd());
        is_believed.then_some(dir)
    }

    fn clock() -> Clock {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        *CLOCK.get_or_init(Clock::calibrate)
    }

    /// Syncs, and waits for longer than a tick.
    fn settle(synced: &Synced, dir: &Path) {
        assert!(asks(synced, dir, Ok(())), "it is new like this");
        std::thread::sleep(Duration::from_nanos(SETTLED_NS) + Duration::from_millis(10));
    }

    /// True if the disk was asked.
    fn asks(synced: &Synced, path: &Path, answer: Result<(), Errno>) -> bool {
        let file = File::open(path).expect("open");
        let asked = Cell::new(false);
        let done = synced.sync(clock(), file.as_fd(), Scope::Whole, |_| {
            asked.set(true);
            answer
        });
        assert_eq!(done, if asked.get() { answer } else { Ok(()) });
        asked.get()
    }

    // Holds: internals/SEMANTICS#names
    #[test]
    fn a_directory_is_synced_once_as_long_as_nothing_changes_in_it() {
        let Some(place) = place() else { return };
        let (synced, dir) = (Synced::new(), place.path());
        let changes: [&dyn Fn(); 5] = [
            &|| fs::write(dir.join("a"), "").expect("created"),
            &|| fs::hard_link(dir.join("a"), dir.join("b")).expect("linked"),
            &|| fs::rename(dir.join("a"), dir.join("c")).expect("renamed"),
            &|| fs::remove_file(dir.join("b")).expect("removed"),
            &|| fs::set_permissions(dir, Permissions::from_mode(0o755)).expect("set"),
        ];
        for (i, change) in changes.into_iter().enumerate() {
            change();
            settle(&synced, dir);
            assert!(asks(&synced, dir, Ok(())), "after change {i}: the one before began too early");
            assert!(!asks(&synced, dir, Ok(())), "after change {i}");
        }
        fs::write(dir.join("c"), "what is in a file is not the directory's").expect("written");
        assert!(!asks(&synced, dir, Ok(())));
    }

    /// Another change within the same tick would not show.
    // Holds: internals/SEMANTICS#names
    #[test]
    fn a_sync_right_behind_a_change_is_not_the_last_one() {
        let Some(place) = place() else { return };
        let synced = Synced::new();
        assert!(asks(&synced, place.path(), Ok(())));
        let row = synced.0.iter().find(|row| row.ino.load(Relaxed) != 0).expect("seen");
        let begin = row.seen.load(Relaxed);
        let ns = |ns: u64| (u128::from(ns) << 20) as u64 / clock().ns(1 << 20);
        let due = |after| row.due(row.state(), clock(), begin + ns(after)) == Due::Last;
        assert!(!due(SETTLED_NS / 2) && due(2 * SETTLED_NS));
        assert!(row.due(row.state(), clock(), begin.wrapping_sub(ns(SETTLED_NS))) == Due::NotLast);
    }

    /// What an fdatasync leaves out a later fsync would not make good.
    // Holds: internals/SEMANTICS#names
    #[test]
    fn the_last_one_is_an_fsync() {
        let Some(place) = place() else { return };
        let synced = Synced::new();
        let dir = File::open(place.path()).expect("open");
        let asked = || {
            let asked = Cell::new(None);
            let real = |scope| {
                asked.set(Some(scope));
                Ok(())
            };
            synced.sync(clock(), dir.as_fd(), Scope::Data, real).expect("no error");
            asked.get()
        };
        assert_eq!(asked(), Some(Scope::Data));
        std::thread::sleep(Duration::from_nanos(SETTLED_NS) + Duration::from_millis(10));
        assert_eq!(asked(), Some(Scope::Whole));
        assert_eq!(asked(), None);
    }

    // Holds: internals/SEMANTICS#names
    #[test]
    fn a_sync_that_failed_is_made_again() {
        let Some(place) = place() else { return };
        let synced = Synced::new();
        settle(&synced, place.path());
        assert!(asks(&synced, place.path(), Err(Errno::IO)));
        assert!(asks(&synced, place.path(), Ok(())));
        assert!(!asks(&synced, place.path(), Err(Errno::IO)));
    }

    #[test]
    fn another_directory_is_another_one_and_a_file_is_none() {
        let Some(place) = place() else { return };
        let synced = Synced::new();
        let dirs = [0, 1].map(|i| place.path().join(i.to_string()));
        dirs.iter().for_each(|dir| fs::create_dir(dir).expect("made"));
        let file = place.path().join("file");
        fs::write(&file, "").expect("written");
        let tmpfs = tempfile::tempdir_in("/dev/shm").expect("a directory");
        dirs.iter().for_each(|dir| settle(&synced, dir));
        for _ in 0..3 {
            for dir in &dirs {
                // Real, where both have the same row.
                asks(&synced, dir, Ok(()));
            }
            assert!(asks(&synced, &file, Ok(())));
        }
        settle(&synced, tmpfs.path());
        for _ in 0..3 {
            assert!(asks(&synced, tmpfs.path(), Ok(())), "not believed");
        }
    }

    #[test]
    fn a_row_that_is_taken_for_ever_makes_every_sync_real() {
        let Some(place) = place() else { return };
        let synced = Synced::new();
        synced.0.iter().for_each(|row| row.is_taken.store(true, Relaxed));
        settle(&synced, place.path());
        assert!((0..3).all(|_| asks(&synced, place.path(), Ok(()))));
    }
}
