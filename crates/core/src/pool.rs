//! The pool file: made, opened, locked, checked.
//!
//! Input: a path. Output: a mapped pool whose superblock was believed, or an error that says what is wrong
//! and what to do. A pool that is open for writing is locked (flock(2)): one daemon at a time.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use seawall_media::{MapError, Medium, Region, probe};

use crate::format::{Cell, Layout, Superblock};
use crate::spill::Area;
use crate::store::Store;

mod area;
pub mod block;
mod create;
mod error;

pub use create::{create, create_with_area};
pub use error::PoolError;
pub(crate) use error::{LimitText, is_limit};

/// Where images and run-time memories lie: a tmpfs on every Linux.
pub const MEMORY: &str = "/dev/shm";

/// An open pool.
pub struct Pool {
    /// The whole pool, mapped.
    pub region: Store,
    /// Its descriptor, or its image's; the first holds the lock.
    pub file: File,
    /// The image in front of a journal.
    pub image: Option<block::Image>,
    /// The journal, which then holds the lock.
    pub lock: Option<File>,
    /// The copies of a log on two devices.
    pub mirror: Option<block::mirror::Mirrored>,
    /// The spill area, if it has one.
    pub area: Option<Area>,
    /// Where it was opened.
    pub path: PathBuf,
    /// The superblock at opening.
    pub superblock: Superblock,
    /// The probed medium.
    pub medium: Medium,
    /// Why we believe that.
    pub because: String,
}

/// Opens a pool for writing and locks it.
///
/// # Errors
/// [`PoolError`].
pub fn open(path: &Path) -> Result<Pool, PoolError> {
    if block::is_journal(path)? {
        return block::open(path);
    }
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(opening(path))?;
    lock(&file, path)?;
    open_file(file, path, false)
}

/// Opens a pool for looking at it. It may be in use meanwhile.
///
/// # Errors
/// [`PoolError`].
pub fn open_read_only(path: &Path) -> Result<Pool, PoolError> {
    if block::is_journal(path)? {
        return block::open_read_only_in(path, Path::new(MEMORY));
    }
    open_file(File::open(path).map_err(opening(path))?, path, true)
}

fn open_file(file: File, path: &Path, read_only: bool) -> Result<Pool, PoolError> {
    let len = file.metadata().map_err(io(path, "asking for the size of"))?.len();
    if len < Layout::MIN_SIZE {
        return Err(PoolError::Size { path: path.into(), size: len });
    }
    let (medium, because, region) = if read_only {
        let region = Region::map_read_only(&file, len);
        (Medium::Emulated, String::new(), region.map_err(|e| map_error(path, e))?)
    } else {
        let probed = probe(&file).map_err(|error| PoolError::Probe { path: path.into(), error })?;
        (probed.medium, probed.because, map(&file, path, len, probed.medium)?)
    };
    let superblock =
        Superblock::read(&region).map_err(|error| PoolError::Superblock { path: path.into(), error })?;
    if !read_only && superblock.is_journaled() {
        return Err(PoolError::Image(path.into()));
    }
    if !read_only && superblock.host != host() {
        return Err(PoolError::OtherHost { path: path.into() });
    }
    if !read_only && medium == Medium::Emulated && !superblock.is_emulated() {
        return Err(PoolError::NotEmulated { path: path.into(), because });
    }
    if Area::is_damaged(&region, &superblock) {
        return Err(PoolError::SpillZone(path.into()));
    }
    let area = Area::of(&region, &superblock);
    let (region, path) = (region.into(), path.into());
    Ok(Pool { region, file, image: None, lock: None, mirror: None, area, path, superblock, medium, because })
}

impl Pool {
    /// Where everything lies.
    pub fn layout(&self) -> Layout {
        self.superblock.layout()
    }

    /// The pool's UUID.
    pub fn uuid(&self) -> u128 {
        u128::from_le_bytes(self.superblock.uuid)
    }

    /// Copies bytes of the log out: of the pool, or, behind its end, of the spill area's slots.
    ///
    /// # Errors
    /// The area's device.
    pub(crate) fn read_log(&self, at: usize, into: &mut [u8]) -> io::Result<()> {
        let Some(behind) = at.checked_sub(self.region.len()) else {
            self.region.read(at, into);
            return Ok(());
        };
        let area = self.area.as_ref().ok_or_else(|| io::Error::other("the pool has no spill area"))?;
        area.read(behind as u64, into)
    }

    /// The cell of the retired LSN.
    pub fn retired(&self) -> Cell {
        Cell::at(Layout::retired())
    }

    /// True if the last daemon ran in this boot: then the page cache is whole.
    pub fn is_same_boot(&self) -> bool {
        self.superblock.boot == boot()
    }

    /// Remembers this boot as the one the log is used in, before the first record of it.
    ///
    /// # Errors
    /// What the medium said.
    pub fn mark_boot(&mut self) -> io::Result<()> {
        self.superblock.boot = boot();
        let Self { superblock, region, .. } = self;
        let both = (Layout::superblock(0), Layout::retired() - Layout::superblock(0));
        region.change(&[both], |region| superblock.write(region)).map_err(Into::into)
    }
}

fn lock(file: &File, path: &Path) -> Result<(), PoolError> {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|e| match e {
        rustix::io::Errno::WOULDBLOCK => PoolError::InUse(path.into()),
        e => PoolError::Io { path: path.into(), doing: "locking", error: e.into() },
    })
}

fn map(file: &File, path: &Path, len: u64, medium: Medium) -> Result<Region, PoolError> {
    Region::map(file, len, medium == Medium::Pmem).map_err(|e| map_error(path, e))
}

fn map_error(path: &Path, error: MapError) -> PoolError {
    PoolError::Map { path: path.into(), error }
}

fn opening(path: &Path) -> impl FnOnce(io::Error) -> PoolError {
    let path = path.to_owned();
    move |error| match error.kind() {
        io::ErrorKind::NotFound => PoolError::Missing(path),
        _ => PoolError::Io { path, doing: "opening", error },
    }
}

fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> PoolError {
    let path = path.to_owned();
    move |error| PoolError::Io { path, doing, error }
}

/// The boot id of this boot (random/boot_id, proc(5)).
pub fn boot() -> [u8; 16] {
    hex_id("/proc/sys/kernel/random/boot_id")
}

/// The machine id of this host (machine-id(5)); zeros where there is none.
pub fn host() -> [u8; 16] {
    hex_id("/etc/machine-id")
}

fn hex_id(path: &str) -> [u8; 16] {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes()
}
