//! What clients map: the pool, and the run-time memory of this boot.

use std::fs::{File, remove_file};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The descriptors that every front gets.
pub(crate) struct Lent {
    /// A descriptor that does not share the pool's lock, which would outlive us in their mappings.
    pool: File,
    memory: File,
    memory_len: u64,
    memory_path: PathBuf,
}

impl Lent {
    /// The pool, and the run-time memory, of so many bytes, which lies at this path.
    pub fn new(pool: File, memory: File, memory_len: u64, memory_path: PathBuf) -> Self {
        Self { pool, memory, memory_len, memory_path }
    }

    /// In the order in which fronts expect them.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.pool.as_fd(), self.memory.as_fd()]
    }

    /// Bytes of the run-time memory.
    pub fn memory_len(&self) -> u64 {
        self.memory_len
    }

    /// Where the run-time memory is.
    pub fn memory_path(&self) -> &Path {
        &self.memory_path
    }

    /// Tells one run-time memory from the others of this boot.
    pub fn memory_inode(&self) -> u64 {
        self.memory.metadata().map_or(0, |memory| memory.ino())
    }

    /// True unless the run-time memory was removed.
    #[cfg(test)]
    pub fn has_memory(&self) -> bool {
        self.memory_path.exists()
    }

    /// Removes the run-time memory: the next daemon makes another one.
    pub fn remove_memory(&self) {
        // It costs memory, and the next start takes it as it is.
        let _ = remove_file(&self.memory_path);
    }
}
