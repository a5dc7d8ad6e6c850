//! The calls under test, and nothing else.
//!
//! They are the C library's own exported symbols, the ones a database calls and `LD_PRELOAD` interposes: `std::fs` makes
//! them one by one, each for one of its methods. A raw system call would slip past Seawall and measure something else.
//! All of this crate's `unsafe` lives here.

use std::fs::File;
use std::io::{self, Error, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Read and write at offsets; created when missing.
    ReadWrite,
    /// Every write goes to the end; created when missing.
    Append,
    /// Read only; must exist.
    Read,
    /// Read only, past the page cache (`O_DIRECT`); must exist.
    ReadDirect,
}

/// An open file; closed on drop.
pub struct Fd(File);

impl Fd {
    /// Opens `path`.
    pub fn open(path: &Path, mode: OpenMode) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).mode(0o644);
        match mode {
            OpenMode::ReadWrite => options.write(true).create(true).truncate(false),
            OpenMode::Append => options.append(true).create(true),
            OpenMode::Read => &mut options,
            OpenMode::ReadDirect => options.custom_flags(libc::O_DIRECT),
        };
        options.open(path).map(Fd)
    }

    /// Writes the whole buffer at an offset.
    pub fn pwrite_all(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    /// Writes the whole buffer in one call at the file's end (`O_APPEND`) or current offset.
    pub fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        loop {
            return match (&self.0).write(bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // Continuing would tear an appended block apart when others append too.
                Ok(n) if n < bytes.len() => Err(Error::new(ErrorKind::WriteZero, "short write")),
                done => done.map(drop),
            };
        }
    }

    /// Reads up to a whole buffer at an offset; returns what was there.
    pub fn pread_full(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            match self.0.read_at(&mut bytes[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// `fdatasync`.
    pub fn fdatasync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    /// `posix_fadvise`: its pages in the page cache are not needed; dirty ones stay.
    pub fn forget_pages(&self) -> io::Result<()> {
        // SAFETY: takes no memory.
        match unsafe { libc::posix_fadvise(self.0.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
            0 => Ok(()),
            error => Err(Error::from_raw_os_error(error)),
        }
    }

    /// `ftruncate`.
    pub fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    /// The file's size.
    pub fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

/// Bytes that this process had the disk read so far.
pub fn read_from_disk() -> io::Result<u64> {
    // SAFETY: all-zero is a valid `rusage`: it is plain numbers.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live `rusage`.
    match unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut used) } {
        0 => Ok(used.ru_inblock as u64 * 512),
        _ => Err(Error::last_os_error()),
    }
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on SIGINT and SIGTERM ask a load to end in order; a second one ends it at once.
pub fn catch_interrupts() {
    extern "C" fn note(_: libc::c_int) {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            // SAFETY: ends the process, and is async-signal-safe.
            unsafe { libc::_exit(130) };
        }
    }
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler touches an atomic and may end the process, both async-signal-safe.
        unsafe { libc::signal(signal, note as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    }
}

/// Whether somebody asked this process to end.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Which side of a fork we are on.
pub enum Forked {
    /// The parent, with the child's process id.
    Parent(i32),
    /// The child; it dies with its parent.
    Child,
}

/// Forks this process. Only sound while it has one thread, which is asserted.
pub fn fork() -> io::Result<Forked> {
    let threads = std::fs::read_dir("/proc/self/task")?.count();
    assert_eq!(threads, 1, "fork after threads were started");
    let parent = std::process::id() as i32;
    // SAFETY: this process has one thread (just checked), so the child may run any code.
    match unsafe { libc::fork() } {
        -1 => Err(Error::last_os_error()),
        0 => {
            // SAFETY: plain integers; no memory is passed.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid() != parent {
                    libc::_exit(1); // the parent died before the line above
                }
            }
            Ok(Forked::Child)
        }
        pid => Ok(Forked::Parent(pid)),
    }
}

/// Ends a forked child without running the parent's exit handlers.
pub fn exit_child(code: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

/// Waits for a child; `Ok(0)` is a clean end.
pub fn wait_child(pid: i32) -> io::Result<i32> {
    let mut status = 0;
    // SAFETY: `status` is a live integer.
    if unsafe { libc::waitpid(pid, &mut status, 0) } < 0 {
        return Err(Error::last_os_error());
    }
    Ok(status)
}
