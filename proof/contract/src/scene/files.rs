//! A scene's files, and calls on them that must succeed.

use crate::context::{c_path, open_quietly};
use libc::{O_CREAT, O_RDWR};
use std::ffi::{CString, c_int};
use std::path::PathBuf;

/// Length of the files when a scene begins.
pub const LENGTH: usize = 64 * 1024;

/// The directory and two tracked files in it, `a-wal` and `b-wal`, full of `A` and `B`.
pub struct Files {
    directory: PathBuf,
    pub a: c_int,
    pub b: c_int,
}

impl Files {
    /// Makes the files: written, synced, written and synced again, and the directory synced.
    pub fn prepare(directory: &str) -> Files {
        let directory = PathBuf::from(directory);
        let make = |name: &str, fill: u8| {
            let fd = opened(&c_path(&directory.join(name)), O_RDWR | O_CREAT);
            write(fd, fill, LENGTH, 0);
            sync(fd);
            write(fd, fill, 100, 0);
            sync(fd);
            fd
        };
        let (a, b) = (make("a-wal", b'A'), make("b-wal", b'B'));
        let files = Files { directory, a, b };
        files.sync_directory();
        files
    }

    /// The path of `name`.
    pub fn path(&self, name: &str) -> CString {
        c_path(&self.directory.join(name))
    }

    /// Opens `name`.
    pub fn open(&self, name: &str, flags: c_int) -> c_int {
        opened(&self.path(name), flags)
    }

    /// Renames, durably.
    pub fn rename(&self, from: &str, to: &str) {
        let (from, to) = (self.path(from), self.path(to));
        // SAFETY: NUL-terminated paths.
        must("rename", unsafe { libc::rename(from.as_ptr(), to.as_ptr()) }.into(), 0);
        self.sync_directory();
    }

    /// Makes names durable.
    pub fn sync_directory(&self) {
        let fd = opened(&c_path(&self.directory), libc::O_RDONLY);
        sync(fd);
        // SAFETY: opened above.
        unsafe { libc::close(fd) };
    }
}

fn opened(path: &CString, flags: c_int) -> c_int {
    let fd = open_quietly(path, flags);
    assert!(fd >= 0, "open {path:?}: {}", crate::trace::errno_name(crate::call::errno()));
    fd
}

/// Panics, naming the errno, unless a call returned what it should.
pub fn must(what: &str, result: i64, wanted: i64) {
    assert_eq!(result, wanted, "{what}: {}", crate::trace::errno_name(crate::call::errno()));
}

/// `pwrite` of `length` bytes.
pub fn write(fd: c_int, fill: u8, length: usize, offset: i64) {
    let page = vec![fill; length];
    // SAFETY: the buffer outlives the call.
    must("pwrite", unsafe { libc::pwrite(fd, page.as_ptr().cast(), length, offset) } as i64, length as i64);
}

/// `fsync`.
pub fn sync(fd: c_int) {
    // SAFETY: plain call.
    must("fsync", unsafe { libc::fsync(fd) }.into(), 0);
}

/// `fdatasync`.
pub fn data_sync(fd: c_int) {
    // SAFETY: plain call.
    must("fdatasync", unsafe { libc::fdatasync(fd) }.into(), 0);
}
