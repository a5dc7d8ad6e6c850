//! What recovery needs of the files it writes to, and of whoever finds them.
//!
//! In production that is [`File`] and [`Directories`](super::Directories); the simulator brings its own, so
//! that resolve, replay and close run unmodified against files that lose what was not synced.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::certain;
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
    /// Something is wrong with the file. Only an operator can say that its records do not matter.
    Lost(String),
    /// Its database has removed it and never reads it again: there is nothing to be written.
    Dropped(String),
}

impl From<String> for Unwritable {
    fn from(why: String) -> Self {
        Self::Lost(why)
    }
}

/// Finds registered files.
pub trait Locate {
    /// What it opens.
    type File: Sink;

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
