//! What a front brings: a directory in the log, and what is at its names.

use core::ffi::CStr;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};

use crate::Owner;
use crate::engine::{Engine, Place};
use crate::file::{FileRef, Stand};
use crate::format::{Attributes, Handle, Replaced};

/// A directory in the log, as a front's call reaches it.
pub trait Directory: Place + Sized {
    /// The log.
    fn engine(&self) -> &Engine;

    /// The thread that calls.
    fn who(&self) -> Owner;

    /// Its slot.
    fn reference(&self) -> FileRef;

    /// Its st_dev and st_ino.
    fn inode(&self) -> (u64, u64);

    /// Its user: a file of another user is not made again.
    fn uid(&self) -> u32;

    /// True if the name must survive a power cut; otherwise its changes are not logged.
    fn keeps(&self, name: &CStr) -> bool;

    /// How its changes stood when it was found ([`Engine::stand`]).
    fn stand(&self) -> Option<Stand>;

    /// What is at a name, if anything is. Links are not followed.
    fn at(&self, name: &CStr) -> Option<Known>;

    /// The directory at a name, if the log knows that one too. Links are not followed.
    fn itself(&self, _name: &CStr) -> Option<Self> {
        None
    }

    /// What is in it, for whoever would remove it.
    fn holds(&self) -> Holds {
        Holds::More
    }

    /// True if it is the directory with this inode, or somewhere below that: the kernel does not move that one here.
    fn is_within(&self, inode: (u64, u64)) -> bool;

    /// It is about to be removed, is out of the log, and holds nothing but guards: those go, and the log knows it no more.
    fn clear(&self) {}

    /// Calls `op` with what the symbolic link at `name` says. `None`: there is none, or it says too much.
    fn with_target<R>(&self, name: &CStr, op: impl FnOnce(&[u8]) -> R) -> Option<R>;

    /// Calls `op` with the whole content of the small file at `name`, which was `known` a moment ago. `None`: it is
    /// another file by now, is too large, or has something that no record has room for.
    fn with_content<R>(&self, name: &CStr, known: &Known, op: impl FnOnce(&[u8]) -> R) -> Option<R>;
}

/// [`Directory::is_within`] for the directory behind `fd`. True too if that cannot be found out.
pub fn lies_within(fd: BorrowedFd<'_>, inode: (u64, u64)) -> bool {
    const ABOVE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    let look = |fd: BorrowedFd<'_>| fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
    let above = |fd: BorrowedFd<'_>| openat(fd, c"..", ABOVE, Mode::empty());
    let (Ok(mut at), Ok(mut next)) = (look(fd), above(fd)) else { return true };
    while at != inode {
        let Ok(found) = look(next.as_fd()) else { return true };
        if found == at {
            // The one above all.
            return false;
        }
        let Ok(found_above) = above(next.as_fd()) else { return true };
        (at, next) = (found, found_above);
    }
    true
}

/// What is in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Nothing.
    Nothing,
    /// Nothing but guards.
    Guards,
    /// Something that programs see.
    More,
}

/// What is at a name.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// A regular file, a directory, a symbolic link, or something else.
    pub kind: Kind,
    /// Its st_dev and st_ino.
    pub inode: (u64, u64),
    /// How many names it has.
    pub links: u64,
    /// The attributes for a copy that is made again.
    pub attributes: Attributes,
    /// Its identity, if a record can name it.
    pub handle: Option<Handle>,
}

/// What kind of thing has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// Anything else.
    Other,
}

impl From<FileType> for Kind {
    fn from(of: FileType) -> Self {
        match of {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            _ => Self::Other,
        }
    }
}

impl Known {
    /// Its identity, if it is a regular file that a record can name.
    pub(super) fn file(&self) -> Option<Handle> {
        self.handle.filter(|_| self.kind == Kind::File)
    }

    /// The same of what can move by a record.
    pub(super) fn entry(&self) -> Option<Handle> {
        self.handle.filter(|_| self.kind != Kind::Other)
    }

    /// The same of one that is about to lose this name.
    pub(super) fn replaced(&self) -> Option<Replaced> {
        self.entry().map(|file| Replaced { file, has_others: self.has_others() })
    }

    /// True if it has more names than one. The links of a directory are those that are in it.
    pub(super) fn has_others(&self) -> bool {
        self.kind != Kind::Directory && self.links > 1
    }
}
