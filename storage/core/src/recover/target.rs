//! What recovery needs from the files it writes to, and from the code that finds them.
//!
//! In production these are [`File`] and [`Directories`](super::Directories); the simulator brings its own, so that
//! resolve, replay and close run unmodified against files that lose whatever was not synced.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::certain;
use crate::format::{Attributes, Handle};
use crate::table::{FileEntry, RootEntry};

/// A file that records are written to.
pub trait Sink {
    /// Writes all bytes at an offset.
    ///
    /// # Errors
    /// Recovery stops, and keeps the log.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Sets the size.
    ///
    /// # Errors
    /// As above.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes content and size durable.
    ///
    /// # Errors
    /// As above.
    fn sync_all(&self) -> io::Result<()>;
}

impl Sink for File {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn sync_all(&self) -> io::Result<()> {
        File::sync_all(self)?;
        Ok(certain::check(self.as_fd())?)
    }
}

/// A file that was found.
pub struct Target<F> {
    /// Open for writing.
    pub file: F,
    /// Where it was found.
    pub path: PathBuf,
}

/// Why a file's records cannot be written, in words.
#[derive(Debug, PartialEq, Eq)]
pub enum Unwritable {
    /// Something is wrong with the file. Only an operator can decide that its records do not matter.
    Lost(String),
    /// Its database has removed it and will never read it again: there is nothing to write.
    Dropped(String),
    /// Something could not be looked at, so nobody knows whether the file is there. It is no more gone than lost.
    Unseen(String),
}

impl From<String> for Unwritable {
    fn from(why: String) -> Self {
        Self::Lost(why)
    }
}

/// The place of a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// Its directory's slot.
    pub directory: u32,
    /// The name in that directory.
    pub name: Vec<u8>,
}

/// The file at a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Here {
    /// Its own handle.
    pub itself: Handle,
    /// A recovery of this pool made it again in place of this file. That mark may be older than the log: a power cut
    /// can bring it back after it was removed.
    pub stands_for: Option<Handle>,
    /// What it says, if it is a symbolic link. Those carry no mark.
    pub target: Option<Vec<u8>>,
    /// It has more names than this one.
    pub has_others: bool,
}

/// Directories in the state in which they are found.
pub trait Look {
    /// The file that the name leads to.
    ///
    /// # Errors
    /// Why it cannot be inspected, in words.
    fn look(&self, at: &At) -> Result<Option<Here>, String>;

    /// True if the file itself is at its place in this directory, because of a run that was cut.
    ///
    /// # Errors
    /// As above: what cannot be looked at may be that file.
    fn is_kept(&self, directory: u32, file: &Handle) -> Result<bool, String>;

    /// The name of the file itself anywhere in a directory, if it has one. Every entry is checked.
    ///
    /// # Errors
    /// As above.
    fn name_of(&self, directory: u32, file: &Handle) -> Result<Option<Vec<u8>>, String>;

    /// The user that owns the directory.
    fn owner(&self, directory: u32) -> u32;

    /// True if a directory is at this name, and something other than a guard is in it.
    fn is_full(&self, at: &At) -> bool;
}

/// A directory that names are replayed into. A file that is made again, or whose name another file may take, stays at a
/// place of its own meanwhile.
pub trait NameSpace {
    /// Where it is.
    fn path(&self) -> PathBuf;

    /// As [`Look::look`].
    ///
    /// # Errors
    /// As for [`Look::look`].
    fn look(&self, name: &[u8]) -> Result<Option<Here>, String>;

    /// True if the file itself is at its place here.
    ///
    /// # Errors
    /// As for [`Look::look`].
    fn is_kept(&self, file: &Handle) -> Result<bool, String>;

    /// As [`Look::name_of`].
    ///
    /// # Errors
    /// As for [`Look::look`].
    fn name_of(&self, file: &Handle) -> Result<Option<Vec<u8>>, String>;

    /// As [`Look::is_full`].
    fn is_full(&self, _name: &[u8]) -> bool {
        false
    }

    /// Makes a file again, at its place, and remembers what it stands for; with a target, a symbolic link.
    ///
    /// # Errors
    /// The disk's error. Recovery stops, and keeps the log.
    fn make(&self, file: &Handle, attributes: &Attributes, target: Option<&[u8]>) -> io::Result<()>;

    /// Keeps the file that is at `name` in `from` at its place here as well.
    ///
    /// # Errors
    /// As above.
    fn keep(&self, file: &Handle, from: &Self, name: &[u8]) -> io::Result<()>;

    /// Gives a file this content and nothing else, durably. It is at `name`, or at its place.
    ///
    /// # Errors
    /// As above.
    fn fill(
        &self,
        file: &Handle,
        name: Option<&[u8]>,
        data: &[u8],
        attributes: &Attributes,
    ) -> io::Result<()>;

    /// Makes `name` lead to the file that is at its place in `from`, wherever it led before.
    ///
    /// # Errors
    /// As above.
    fn put(&self, file: &Handle, from: &Self, name: &[u8]) -> io::Result<()>;

    /// Removes a name. It leads to a file, or to an empty directory.
    ///
    /// # Errors
    /// As above.
    fn remove(&self, name: &[u8]) -> io::Result<()>;

    /// Makes the file's content durable, as it is.
    ///
    /// # Errors
    /// As above.
    fn sync_file(&self, name: &[u8]) -> io::Result<()>;

    /// Makes all names durable.
    ///
    /// # Errors
    /// As above.
    fn sync(&self) -> io::Result<()>;

    /// Clears the places of these files, durably. The names that lead to them are durable already.
    ///
    /// # Errors
    /// As above.
    fn clear(&self, files: &[Handle]) -> io::Result<()>;

    /// A directory in this one, at this name or, without one, at the place of this file.
    ///
    /// # Errors
    /// The disk's error.
    fn inner(&self, file: &Handle, name: Option<&[u8]>) -> io::Result<Self>
    where
        Self: Sized,
    {
        let _ = (file, name);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The log is closed: forgets what the files at these names stand for.
    fn end(&self, names: &[&[u8]]);
}

/// Finds registered files.
pub trait Locate {
    /// The files that it opens.
    type File: Sink;
    /// The directories that it finds.
    type Names: NameSpace;

    /// Opens `entry`'s file below its root. `power_lost`: the machine went down since the log was written,
    /// so nobody may have written the file since.
    ///
    /// # Errors
    /// [`Unwritable`].
    fn locate(
        &self,
        root: Option<&RootEntry>,
        entry: &FileEntry,
        power_lost: bool,
    ) -> Result<Target<Self::File>, Unwritable>;

    /// Finds `entry`, a directory, below its root.
    ///
    /// # Errors
    /// [`Unwritable`].
    fn directory(&self, root: Option<&RootEntry>, entry: &FileEntry) -> Result<Self::Names, Unwritable>;

    /// Opens a file that has just been made again in one of its directories.
    ///
    /// # Errors
    /// The disk's error. Recovery stops, and keeps the log.
    fn open_again(&self, names: &Self::Names, name: &[u8]) -> io::Result<Self::File> {
        let _ = (names, name);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Every file was found; the first write follows.
    ///
    /// # Errors
    /// What could not be written: nothing is replayed then.
    fn begin(&self) -> Result<(), (PathBuf, io::Error)> {
        Ok(())
    }

    /// The log is closed.
    fn end(&self) {}
}
