//! The round's files.

use std::ffi::{CStr, CString, c_int};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::ptr::null_mut;

use super::memory::{BLOCK, BLOCKS};
use crate::call::errno;
use crate::context::c_path;
use crate::trace::errno_name;

/// How long a file is but while somebody makes it shorter.
pub const LENGTH: usize = BLOCK * BLOCKS;

/// Where they are.
pub struct Paths {
    /// The file.
    pub file: CString,
    /// Where files are made that something is copied from or to.
    pub side: PathBuf,
    /// The file, behind the mount.
    pub behind: Option<CString>,
}

impl Paths {
    /// A file of one thread's.
    pub fn side(&self, who: &str) -> CString {
        c_path(&self.side.with_extension(who))
    }

    /// Removes the file. Those beside it have no name.
    pub fn remove(&self) {
        // SAFETY: the path is NUL-terminated.
        unsafe { libc::unlink(self.file.as_ptr()) };
    }
}

/// What a call said: a length, or why not.
pub fn said(what: &str, result: i64) -> Result<usize, String> {
    usize::try_from(result).map_err(|_| {
        let error = if result == -1 { errno() } else { -result as c_int };
        format!("{what}: {}", errno_name(error))
    })
}

/// The same of a call that must do all of it.
pub fn all(what: &str, length: usize, result: i64) -> Result<(), String> {
    match said(what, result)? {
        done if done == length => Ok(()),
        done => Err(format!("{what}: {done} of {length}")),
    }
}

/// Makes the round's file: zeros.
pub fn made(path: &CStr, flags: c_int) -> Result<OwnedFd, String> {
    let file = Files::open(path, libc::O_RDWR | libc::O_CREAT | flags)?;
    // SAFETY: plain call.
    said("ftruncate", unsafe { libc::ftruncate(file.fd(), LENGTH as i64) }.into())?;
    Ok(file.0)
}

/// An open file.
pub struct Files(OwnedFd);

impl Files {
    /// open(2).
    pub fn open(path: &CStr, flags: c_int) -> Result<Files, String> {
        // SAFETY: the path is NUL-terminated; the descriptor is ours.
        unsafe {
            let fd = libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o644);
            said("open", fd.into())?;
            Ok(Files(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// One that has no name.
    pub fn aside(path: &CStr) -> Result<Files, String> {
        let file = Files::open(path, libc::O_RDWR | libc::O_CREAT)?;
        // SAFETY: the path is NUL-terminated.
        said("unlink", unsafe { libc::unlink(path.as_ptr()) }.into())?;
        Ok(file)
    }

    /// Its number.
    pub fn fd(&self) -> c_int {
        self.0.as_raw_fd()
    }

    /// As much as there is.
    pub fn read(&self, into: &mut [u8], offset: usize) -> Result<usize, String> {
        let mut got = 0;
        while got < into.len() {
            let rest = &mut into[got..];
            // SAFETY: as long as said.
            let read = unsafe {
                libc::pread(self.fd(), rest.as_mut_ptr().cast(), rest.len(), (offset + got) as i64) as i64
            };
            match said("pread", read)? {
                0 => break,
                // O_DIRECT ends at the file's end, and does not begin there.
                n => got += n,
            }
        }
        Ok(got)
    }

    /// pwrite(2).
    pub fn write(&self, bytes: &[u8], offset: usize) -> Result<(), String> {
        // SAFETY: as long as said.
        let written =
            unsafe { libc::pwrite(self.fd(), bytes.as_ptr().cast(), bytes.len(), offset as i64) as i64 };
        all("pwrite", bytes.len(), written)
    }
}

/// All of a file, mapped.
pub struct Mapping(*mut u8);

impl Mapping {
    /// mmap(2), shared.
    pub fn new(file: &Files, protection: c_int) -> Result<Mapping, String> {
        // SAFETY: a fresh mapping.
        let at = unsafe { libc::mmap(null_mut(), LENGTH, protection, libc::MAP_SHARED, file.fd(), 0) };
        if at == libc::MAP_FAILED { Err(said("mmap", -1).unwrap_err()) } else { Ok(Mapping(at.cast())) }
    }

    /// Copies out, a word at a time: others store there.
    pub fn load(&self, into: &mut [u8], offset: usize) {
        for (i, word) in into.chunks_exact_mut(8).enumerate() {
            // SAFETY: inside the mapping and, while `Model::shorter` is held, the file.
            let found = unsafe { self.0.add(offset + i * 8).cast::<u64>().read_volatile() };
            word.copy_from_slice(&found.to_ne_bytes());
        }
    }

    /// Stores, and waits until it has been written.
    pub fn store(&self, bytes: &[u8], offset: usize) -> Result<(), String> {
        for (i, word) in bytes.chunks_exact(8).enumerate() {
            let word = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
            // SAFETY: as above.
            unsafe { self.0.add(offset + i * 8).cast::<u64>().write_volatile(word) };
        }
        // SAFETY: inside the mapping.
        said("msync", unsafe { libc::msync(self.0.add(offset).cast(), bytes.len(), libc::MS_SYNC) }.into())
            .map(drop)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { libc::munmap(self.0.cast(), LENGTH) };
    }
}

/// A pipe that takes the longest span.
pub struct Pipe {
    /// Where it is read.
    pub out: Files,
    /// Where it is written.
    pub into: Files,
}

impl Pipe {
    /// pipe(2).
    pub fn new() -> Result<Pipe, String> {
        let mut ends = [-1; 2];
        // SAFETY: room for two descriptors, which are ours.
        unsafe {
            said("pipe", libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC).into())?;
            let [out, into] = ends.map(|fd| Files(OwnedFd::from_raw_fd(fd)));
            said("F_SETPIPE_SZ", libc::fcntl(into.fd(), libc::F_SETPIPE_SZ, 1 << 20).into())?;
            Ok(Pipe { out, into })
        }
    }

    /// Takes out what is in it.
    pub fn take(&self, into: &mut [u8]) -> Result<(), String> {
        let mut got = 0;
        while got < into.len() {
            let rest = &mut into[got..];
            // SAFETY: as long as said.
            let read = unsafe { libc::read(self.out.fd(), rest.as_mut_ptr().cast(), rest.len()) as i64 };
            got += said("read of a pipe", read)?;
        }
        Ok(())
    }
}
