//! The image: a regular file in the log, its reads, writes and syncs.
//!
//! Invariant: a write around the log holds the file's place for reading, a registration for writing. So no write is under way
//! around the log when the daemon takes the image into it.

mod file;
mod taken;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use std::sync::{Mutex, RwLock, RwLockReadGuard};

use rustix::fs::FallocateFlags;
use seawall_core::client::Course;
use seawall_core::{At, Begun, Change, Errno, FileRef, Scope, Syncing, certain};
use seawall_media::locks::{read, write};
use seawall_media::sim;

use crate::cached::{Cached, Read};
use crate::config::LONGEST_ZEROS;
use crate::failure::Refused;
use crate::log::Log;
use crate::memory::Slice;
use crate::sys;
use file::{check, open_true};
pub use file::{grow, may_become};

/// So much of a write is one record, which is whole or absent after a power cut.
const RECORD: usize = 1 << 20;
/// Zeros to write by.
static ZEROS: [u8; 1 << 20] = [0; 1 << 20];
const _: () = assert!(LONGEST_ZEROS.is_multiple_of(ZEROS.len() as u64));

/// A disk's content.
pub struct Image<L> {
    /// Where it was when it was opened.
    path: PathBuf,
    /// Open for writing only while it is ours: on the same host somebody else's daemon would take us for a stranger who writes.
    file: File,
    bytes: AtomicU64,
    /// It is locked, and in the log. Until then, and after it was let go, it is another machine's.
    is_ours: Mutex<bool>,
    log: Option<Logged<L>>,
}

struct Logged<L> {
    joined: L,
    /// Each write is to be whole after a power cut, flushed or not.
    is_atomic: bool,
    /// Its place in the log. `None`: it is not in it.
    place: RwLock<Option<FileRef>>,
    /// A message has said that it is written around the log.
    told: AtomicBool,
    /// What the block cache has of it.
    cached: Cached,
}

impl<L: Log> Image<L> {
    /// Opens the image at `path`, or where its guard keeps it. The rest as [`of`](Self::of).
    ///
    /// # Errors
    /// [`Refused`].
    pub fn open(path: &Path, joined: Option<L>, is_atomic: bool) -> Result<Self, Refused> {
        let file = open_true(path, true).map_err(Refused::failed(path.display().to_string()))?;
        Self::of(path, file, joined, is_atomic)
    }

    /// The image that `file` is, called `path`. It is to be [taken](Self::take) before anybody uses it. `joined`: its log; a disk
    /// that is read alone has none. `is_atomic`: each write is whole after a power cut, flushed or not.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn of(path: &Path, file: File, joined: Option<L>, is_atomic: bool) -> Result<Self, Refused> {
        let stat = check(path, &file)?;
        let log = joined.map(|joined| Logged {
            joined,
            is_atomic,
            place: RwLock::new(None),
            told: AtomicBool::new(false),
            cached: Cached::new((stat.dev(), stat.ino())),
        });
        let (path, bytes) = (path.into(), AtomicU64::new(stat.len()));
        Ok(Self { path, file, bytes, is_ours: Mutex::new(false), log })
    }

    /// Its size. It never becomes less while it is served.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Acquire)
    }

    /// Makes it larger, durably: the size that a guest gets to know stays.
    ///
    /// # Errors
    /// The disk's, or the log's.
    pub fn grow(&self, bytes: u64) -> Result<(), Errno> {
        let grown = || rustix::fs::ftruncate(&self.file, bytes);
        // What is behind the end is in no cache.
        self.change((bytes, 0), |begun| begun.log_truncate(bytes), grown)?;
        self.sync()?;
        self.bytes.fetch_max(bytes, AcqRel);
        Ok(())
    }

    /// True if a guest cannot write it.
    pub fn is_read_only(&self) -> bool {
        self.log.is_none()
    }

    /// Reads into the guest's memory, all of it. With `from_cache` only what is in memory: EAGAIN says that not all was
    /// there, and nothing of what is in the memory by then counts.
    ///
    /// # Errors
    /// The disk's; EIO if the image has become shorter.
    pub fn read(&self, mut at: u64, mut into: Vec<Slice<'_>>, from_cache: bool) -> Result<(), Errno> {
        if let Some(log) = &self.log
            && log.cached.read(
                log.joined.caching(),
                &Read { file: &self.file, at, into: &into, at_once: from_cache },
            )?
        {
            return Ok(());
        }
        while !into.is_empty() {
            let done = match sys::read_into(self.file.as_fd(), at, &into, from_cache) {
                Err(Errno::INTR) => continue,
                Ok(0) => return Err(Errno::IO),
                done => done?,
            };
            at += done as u64;
            into = behind(&into, done)?;
        }
        Ok(())
    }

    /// Writes these bytes; what is logged of it is durable with the next [`sync`](Self::sync).
    ///
    /// # Errors
    /// The disk's, or the log's.
    pub fn write(&self, at: u64, data: &[u8]) -> Result<(), Errno> {
        for (i, part) in data.chunks(RECORD).enumerate() {
            let at = at + (i * RECORD) as u64;
            self.change(
                (at, part.len() as u64),
                |begun| begun.log_write(At::Offset(at), std::iter::once(part)),
                || self.write_whole(at, part),
            )?;
        }
        Ok(())
    }

    /// Makes these bytes zero; with `may_unmap` the file system gets their room back.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_zeros(&self, at: u64, len: u64, may_unmap: bool) -> Result<(), Errno> {
        let whole = (len / ZEROS.len() as u64) as usize;
        let rest = (len % ZEROS.len() as u64) as usize;
        let zeros = std::iter::repeat_n(&ZEROS[..], whole).chain(std::iter::once(&ZEROS[..rest]));
        let publish = || {
            let kept = FallocateFlags::KEEP_SIZE;
            let mode = if may_unmap { FallocateFlags::PUNCH_HOLE } else { FallocateFlags::ZERO_RANGE };
            let by_one_call = match sim::publishes_zeros(self.file.as_raw_fd(), at, len) {
                None => rustix::fs::fallocate(&self.file, mode | kept, at, len).is_ok(),
                Some(simulated) => simulated.is_ok(),
            };
            if by_one_call {
                return Ok(());
            }
            let mut at = at;
            zeros.clone().try_for_each(|part| {
                self.write_whole(at, part)?;
                at += part.len() as u64;
                Ok(())
            })
        };
        self.change((at, len), |begun| begun.log_write(At::Offset(at), zeros.clone()), publish)
    }

    fn write_whole(&self, at: u64, data: &[u8]) -> Result<(), Errno> {
        match sim::publishes(self.file.as_raw_fd(), at, data) {
            None => {
                self.file.write_all_at(data, at).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))
            }
            Some(simulated) => simulated.map_err(Errno::from_raw_os_error),
        }
    }

    /// Begin, log, publish, finish; or around the log.
    fn change<'e>(
        &'e self,
        (from, len): (u64, u64),
        log_it: impl FnOnce(Begun<'e>) -> Result<Change<'e>, Errno>,
        publish: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let Some(log) = &self.log else { return Err(Errno::ROFS) };
        log.cached.changing(log.joined.caching(), from, len, || self.change_logged(log, log_it, publish))
    }

    fn change_logged<'e>(
        &'e self,
        log: &'e Logged<L>,
        log_it: impl FnOnce(Begun<'e>) -> Result<Change<'e>, Errno>,
        publish: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let place = self.place(log);
        let Some(file) = *place else { return publish() };
        let engine = log.joined.engine();
        let logged = log_it(engine.begin(log.joined.me(), file, self.file.as_fd()));
        if engine.gave_up() {
            errln!(
                "seawall: the log stays full: the image leaves it, and its blocks can tear until it is back"
            );
        }
        let change = logged?;
        let done = publish();
        change.finish(done.is_ok());
        done
    }

    /// Makes everything that was written durable: waits for the log alone, if the image is in it.
    ///
    /// # Errors
    /// The log's or the disk's.
    pub fn sync(&self) -> Result<(), Errno> {
        let Some(log) = &self.log else { return Ok(()) };
        let place = self.place(log);
        let fd = self.file.as_fd();
        let real = || log.cached.syncing(log.joined.caching(), || certain::fdatasync(fd));
        let Some(file) = *place else { return real() };
        let mut sync = log.joined.engine().sync(log.joined.me(), file, Scope::Data);
        loop {
            sync = match sync {
                Syncing::Done(done) => return done,
                Syncing::Name(due) => due.synced(self.sync_name(log, file)),
                Syncing::Real(due) => due.synced(real()),
            }
        }
    }

    fn sync_name(&self, log: &Logged<L>, file: FileRef) -> Result<bool, Errno> {
        let path = self.path().map_err(|_| Errno::NOENT)?;
        log.joined.engine().sync_directory(file, self.file.as_fd(), path.as_os_str().as_bytes())
    }

    /// True if a change waits for the end of a freeze.
    pub fn must_wait(&self) -> bool {
        let Some(log) = &self.log else { return false };
        read(&log.place).is_some_and(|file| log.joined.engine().state(file).is_suspended())
    }

    /// True if a sync waits for nobody: no disk, and no other host.
    pub fn syncs_at_once(&self) -> bool {
        let Some(log) = &self.log else { return true };
        let engine = log.joined.engine();
        let is_absorbed =
            |file: FileRef| engine.pool().journal().is_none() && engine.absorbs(file, Scope::Data);
        read(&log.place).is_some_and(is_absorbed)
    }

    /// Its place in the log, for as long as that may not change.
    fn place<'l>(&self, log: &'l Logged<L>) -> RwLockReadGuard<'l, Option<FileRef>> {
        let is_known = |file: FileRef| log.joined.engine().knows(file);
        let mut place = read(&log.place);
        if !place.is_some_and(is_known) && log.joined.may_ask() {
            drop(place);
            self.register(log);
            place = read(&log.place);
        }
        if place.is_none() && !log.told.swap(true, Relaxed) {
            errln!(
                "seawall: the image is not in the log: the guest's flushes wait for its disk until it is back"
            );
        }
        place
    }

    fn register(&self, log: &Logged<L>) -> Course {
        let mut place = write(&log.place);
        let course = log.joined.register(self.file.as_fd(), log.is_atomic);
        *place = match course {
            Course::Log(file) => Some(file),
            _ => None,
        };
        if let Some(file) = *place
            && log.told.swap(false, Relaxed)
        {
            log.joined.engine().disturb(file);
        }
        course
    }

    /// Where it is now.
    fn path(&self) -> io::Result<PathBuf> {
        std::fs::read_link(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// Nothing of ours is under way any more.
    pub fn leave(&self) {
        if let Some(log) = &self.log {
            log.joined.leave();
        }
    }
}

/// What is left of these behind so many bytes.
fn behind<'m>(slices: &[Slice<'m>], mut done: usize) -> Result<Vec<Slice<'m>>, Errno> {
    let mut rest = Vec::new();
    for slice in slices {
        if done >= slice.len() {
            done -= slice.len();
            continue;
        }
        rest.push(slice.offset(done).map_err(|_| Errno::IO)?);
        done = 0;
    }
    Ok(rest)
}
