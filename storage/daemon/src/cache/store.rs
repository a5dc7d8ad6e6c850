//! What a cache has on a disk: blocks, and the index as it was when it was closed. Read and written past the page cache,
//! in a file of an ordinary file system or on a device that is nothing else's.
//!
//! Whoever reads through the cache has a descriptor of it for reading. Only the daemon writes.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use seawall_cache::shared::{Cache, Layout, StoreHeader};
use seawall_media::Region;
use zerocopy::{FromBytes, IntoBytes};

use super::aligned::Aligned;
use super::error::{CacheError, failed};

/// Bytes that are read or written at once.
const PIECE: usize = 1 << 20;

/// An open store.
pub(super) struct Store {
    /// Holds the lock.
    file: File,
    /// For clients: it can only read, and does not share the lock.
    for_clients: File,
}

/// True for a disk, a partition or the like; not for a file.
pub fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_block_device())
}

impl Store {
    /// The store at this path, locked; `None` if there is nothing. A device only if nobody else uses it, nor mounts it
    /// meanwhile.
    pub fn open(path: &Path) -> Result<Option<Self>, CacheError> {
        // Of a device the name may be a link: of a file it may not, for its directory may be anybody's.
        let flags = if is_device(path) { OFlags::EXCL } else { OFlags::NOFOLLOW | OFlags::NONBLOCK };
        match open(path, flags | OFlags::NOCTTY, false) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) if e.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => Err(CacheError::UsedDevice {
                path: path.into(),
                by: "it is mounted, or something else uses it",
            }),
            Err(e) => Err(not_direct(path, e)),
            Ok(file) => Self::new(file, path).map(Some),
        }
    }

    /// Makes an empty file for one.
    pub fn create(path: &Path) -> Result<Self, CacheError> {
        let file = open(path, OFlags::NOFOLLOW, true).map_err(|e| not_direct(path, e))?;
        Self::new(file, path)
    }

    fn new(file: File, path: &Path) -> Result<Self, CacheError> {
        let stat = file.metadata().map_err(failed(path, "read the size of"))?;
        let is_own = stat.is_file() && stat.uid() == rustix::process::geteuid().as_raw();
        if !is_own && !stat.file_type().is_block_device() {
            let error = io::Error::new(ErrorKind::PermissionDenied, "it is not a regular file of this user");
            return Err(failed(path, "open")(error));
        }
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|e| match e {
            Errno::WOULDBLOCK => CacheError::InUse { path: path.into(), pids: Vec::new() },
            e => failed(path, "lock")(e.into()),
        })?;
        let again = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = (OFlags::DIRECT | OFlags::NOCTTY).bits() as i32;
        let for_clients = OpenOptions::new().read(true).custom_flags(flags).open(again);
        Ok(Self { for_clients: for_clients.map_err(failed(path, "open"))?, file })
    }

    /// What clients read by.
    pub fn lend(&self) -> BorrowedFd<'_> {
        self.for_clients.as_fd()
    }

    /// What it lies in.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Makes it this long, without taking room. A device must be.
    pub fn lengthen(&self, path: &Path, size: u64) -> Result<(), CacheError> {
        let asking = failed(path, "read the size of");
        if !self.file.metadata().map_err(&asking)?.file_type().is_block_device() {
            return self.file.set_len(size).map_err(failed(path, "make"));
        }
        match seawall_media::block::size_of(&self.file).map_err(&asking)? {
            len if len < size => Err(CacheError::NoRoom { path: path.into(), size }),
            _ => Ok(()),
        }
    }

    /// Its header; `None` if it does not begin like a store.
    pub fn header(&self) -> io::Result<Option<StoreHeader>> {
        let mut page = Aligned::new(StoreHeader::BYTES);
        match self.file.read_exact_at(&mut page, 0) {
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let header = StoreHeader::read_from_prefix(&page).ok().map(|(header, _)| header);
        Ok(header.filter(StoreHeader::is_ours))
    }

    /// True if it is an empty file, or a device with nothing at its beginning, where file systems, partition tables and
    /// RAIDs are.
    pub fn is_blank(&self) -> io::Result<bool> {
        let stat = self.file.metadata()?;
        if stat.is_file() {
            return Ok(stat.len() == 0);
        }
        let mut piece = Aligned::new(PIECE);
        let read = self.file.read_at(&mut piece, 0)?;
        Ok(piece[..read].iter().all(|byte| *byte == 0))
    }

    /// Writes the header, durably; all that was written before it is durable too.
    pub fn set_header(&self, header: &StoreHeader) -> io::Result<()> {
        self.file.sync_data()?;
        let mut page = Aligned::new(StoreHeader::BYTES);
        page[..size_of::<StoreHeader>()].copy_from_slice(header.as_bytes());
        self.file.write_all_at(&page, 0)?;
        self.file.sync_data()
    }

    /// Makes a device look like nothing again.
    pub fn wipe(&self) -> io::Result<()> {
        self.file.write_all_at(&Aligned::new(StoreHeader::BYTES), 0)?;
        self.file.sync_data()
    }

    /// Saves the index of a cache that was closed. Not believed before the [header](Self::set_header) says so.
    pub fn save(&self, cache: &Cache) -> io::Result<()> {
        let mut piece = Aligned::new(PIECE);
        each_piece(cache.layout(), |at, len| {
            cache.read_index(at, &mut piece[..len]);
            self.file.write_all_at(&piece[..len], Layout::SAVED_AT + at as u64)
        })
    }

    /// Brings the saved index back.
    pub fn load(&self, layout: Layout, into: &Region) -> io::Result<()> {
        let mut piece = Aligned::new(PIECE);
        each_piece(layout, |at, len| {
            self.file.read_exact_at(&mut piece[..len], Layout::SAVED_AT + at as u64)?;
            into.copy_in(at, &piece[..len]);
            Ok(())
        })
    }

    /// Writes a block, whose memory is aligned. It is on the device, or in that one's cache, when this returns: a plain call
    /// and not io_uring, for what a daemon has under way there when it is killed may be written after the next one began.
    pub fn write(&self, at: u64, block: &[u8]) -> io::Result<()> {
        self.file.write_all_at(block, at)
    }
}

fn each_piece(layout: Layout, mut piece: impl FnMut(usize, usize) -> io::Result<()>) -> io::Result<()> {
    let end = layout.index_bytes();
    (0..end).step_by(PIECE).try_for_each(|at| piece(at, PIECE.min(end - at)))
}

fn open(path: &Path, flags: OFlags, is_new: bool) -> io::Result<File> {
    let flags = (flags | OFlags::DIRECT).bits() as i32;
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(is_new).truncate(is_new).mode(0o600);
    options.custom_flags(flags).open(path)
}

fn not_direct(path: &Path, error: io::Error) -> CacheError {
    match error.raw_os_error() {
        Some(code) if code == Errno::INVAL.raw_os_error() => CacheError::NotDirect { path: path.into() },
        _ => failed(path, "open")(error),
    }
}
