//! A directory in the log, as the calls on its names see it.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, readlinkat, statat};
use seawall_core::file::{Flag, Stand};
use seawall_core::format::{Attributes, Handle};
use seawall_core::naming::{Directory, Holds, Kind, Known, LARGEST, has_attributes, lies_within};
use seawall_core::{Engine, Errno, FileRef, Owner, Place, certain, directory, policy};
use seawall_wire::shm::Preset;

use crate::log::Log;

/// A directory in the log.
pub struct Here<'f> {
    log: &'f Log,
    fd: ByPath<'f>,
    pub(super) reference: FileRef,
    inode: (u64, u64),
    uid: u32,
    pub(super) preset: Preset,
    /// When it was found.
    changed: u64,
    /// How its changes stood then.
    stand: Option<Stand>,
}

/// A descriptor by O_PATH.
enum ByPath<'f> {
    Borrowed(BorrowedFd<'f>),
    Owned(OwnedFd),
}

impl AsFd for ByPath<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Borrowed(fd) => *fd,
            Self::Owned(fd) => fd.as_fd(),
        }
    }
}

/// The directory behind `fd`, if it is in the log.
pub fn here<'f>(log: &'f Log, fd: BorrowedFd<'f>) -> Option<Here<'f>> {
    found(log, ByPath::Borrowed(fd))
}

/// The directory called `name` in the one behind `fd`, if it is in the log.
pub fn itself<'f>(log: &'f Log, fd: BorrowedFd<'_>, name: &CStr) -> Option<Here<'f>> {
    const FLAGS: OFlags =
        OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    if !log.engine.has_directories() {
        return None;
    }
    found(log, ByPath::Owned(openat(fd, name, FLAGS, Mode::empty()).ok()?))
}

fn found<'f>(log: &'f Log, fd: ByPath<'f>) -> Option<Here<'f>> {
    let engine = Some(&log.engine).filter(|engine| engine.has_directories())?;
    let stat = fstat(&fd).ok()?;
    let inode = (stat.st_dev, stat.st_ino);
    let reference = engine.find(inode.0, inode.1)?;
    let is_one = engine.state(reference).has(Flag::DIRECTORY);
    let (changed, preset) = (directory::changed_of(&stat), engine.preset_of(reference)?);
    let stand = engine.stand(reference);
    is_one.then_some(Here { log, fd, reference, inode, uid: stat.st_uid, preset, changed, stand })
}

/// A directory was made, which is called `name` in the one behind `fd`.
pub fn note_made(log: &Log, fd: BorrowedFd<'_>, name: &OsStr) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(made) = openat(fd, name, flags, Mode::empty()) else { return };
    let handle = seawall_media::handle(&made).ok().and_then(|(kind, bytes)| Handle::new(kind, &bytes));
    if let Some((stat, handle)) = fstat(&made).ok().zip(handle) {
        log.engine.directory_is_made((stat.st_dev, stat.st_ino), &handle, &Attributes::of(&stat));
    }
}

impl Here<'_> {
    /// Its inode.
    pub fn is(&self, other: &Self) -> bool {
        self.inode == other.inode
    }

    fn open(&self) -> Result<OwnedFd, Errno> {
        openat(&self.fd, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
    }
}

impl Place for Here<'_> {
    fn changed_before(&self) -> u64 {
        self.changed
    }

    fn changed(&self) -> u64 {
        directory::changed(self.fd.as_fd())
    }

    fn sync(&self, with_files: bool) -> Result<(), Errno> {
        let open = self.open()?;
        if with_files { rustix::fs::syncfs(open) } else { rustix::fs::fsync(open) }
    }

    fn check(&self) -> Result<(), Errno> {
        certain::check(self.open()?.as_fd())
    }
}

impl Directory for Here<'_> {
    fn engine(&self) -> &Engine {
        &self.log.engine
    }

    fn who(&self) -> Owner {
        self.log.me()
    }

    fn reference(&self) -> FileRef {
        self.reference
    }

    fn inode(&self) -> (u64, u64) {
        self.inode
    }

    fn uid(&self) -> u32 {
        self.uid
    }

    fn keeps(&self, name: &CStr) -> bool {
        policy::keeps_name(self.preset, name.to_bytes())
    }

    fn stand(&self) -> Option<Stand> {
        self.stand
    }

    fn at(&self, name: &CStr) -> Option<Known> {
        let stat = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let kind = Kind::from(FileType::from_raw_mode(stat.st_mode));
        let handle = || {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let found = openat(&self.fd, name, flags, Mode::empty()).ok()?;
            let (kind, bytes) = seawall_media::handle(found).ok()?;
            Handle::new(kind, &bytes)
        };
        let handle = if kind == Kind::Other { None } else { handle() };
        let (inode, attributes) = ((stat.st_dev, stat.st_ino), Attributes::of(&stat));
        Some(Known { kind, inode, links: stat.st_nlink, attributes, handle })
    }

    fn itself(&self, name: &CStr) -> Option<Self> {
        itself(self.log, self.fd.as_fd(), name)
    }

    fn holds(&self) -> Holds {
        self.open().map_or(Holds::More, |open| crate::names::holds(&open))
    }

    fn is_within(&self, inode: (u64, u64)) -> bool {
        lies_within(self.fd.as_fd(), inode)
    }

    fn clear(&self) {
        // What stays is in the way of its removal, which reports it.
        if let Ok(open) = self.open() {
            let _ = self.log.daemon.lower_left(open.as_fd());
        }
    }

    fn with_target<R>(&self, name: &CStr, op: impl FnOnce(&[u8]) -> R) -> Option<R> {
        readlinkat(&self.fd, name, Vec::new()).ok().map(|target| op(target.to_bytes()))
    }

    fn with_content<R>(&self, name: &CStr, known: &Known, op: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(openat(&self.fd, name, flags, Mode::empty()).ok()?);
        let stat = fstat(&file).ok().filter(|is| (is.st_dev, is.st_ino) == known.inode)?;
        if stat.st_size > LARGEST as i64 || has_attributes(file.as_fd()) {
            return None;
        }
        let mut data = Vec::with_capacity(stat.st_size as usize + 1);
        file.take(LARGEST as u64 + 1).read_to_end(&mut data).ok()?;
        (data.len() <= LARGEST).then(|| op(&data))
    }
}
