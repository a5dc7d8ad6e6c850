//! What needs `unsafe`: a fanotify group that was inherited, and calls that nix does not have.

#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use nix::libc;
use nix::sys::fanotify::Fanotify;
use rustix::io::Errno;

/// The fanotify group behind a descriptor; `None` if it is something else.
pub(crate) fn fanotify(fd: OwnedFd) -> Option<Fanotify> {
    let what = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
    // SAFETY: the kernel has just said that this open descriptor is a fanotify group.
    (what.as_os_str() == "anon_inode:[fanotify]").then(|| unsafe { Fanotify::from_owned_fd(fd) })
}

/// Lets an open pass that waits for this descriptor's answer, of whatever process that is. False if none does.
pub(crate) fn allow(group: &Fanotify, fd: i32) -> bool {
    let answer = libc::fanotify_response { fd, response: libc::FAN_ALLOW };
    let len = size_of::<libc::fanotify_response>();
    // SAFETY: a write of as many bytes as `answer` has.
    unsafe { libc::write(group.as_fd().as_raw_fd(), (&raw const answer).cast(), len) == len as isize }
}

/// The process at the other end of a Unix socket; 0 for one of a process-id namespace that is not to be seen from here.
pub(crate) fn peer_pid(socket: BorrowedFd<'_>) -> Option<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: the kernel writes at most `len` bytes, which `peer` has.
    let got =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut peer).cast(), &raw mut len) };
    if got == 0 { u32::try_from(peer.pid).ok() } else { None }
}

/// Takes (F_WRLCK) or gives back (F_UNLCK) a lease, fcntl(2). False if the kernel says no.
pub(crate) fn lease(fd: BorrowedFd<'_>, kind: i32) -> bool {
    // SAFETY: a call on an open descriptor, with an integer argument.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETLEASE, kind) == 0 }
}

/// Opens the file with this handle, on the file system of `mount`, for syncing. Takes CAP_DAC_READ_SEARCH.
///
/// # Errors
/// STALE: its last name is gone; PERM without the privilege; what else open(2) says.
pub(crate) fn open_by_handle(mount: BorrowedFd<'_>, kind: i32, handle: &[u8]) -> Result<OwnedFd, Errno> {
    const MOST: usize = 64;
    #[repr(C)]
    struct Raw {
        bytes: u32,
        kind: i32,
        handle: [u8; MOST],
    }
    let mut raw = Raw { bytes: handle.len() as u32, kind, handle: [0; MOST] };
    raw.handle.get_mut(..handle.len()).ok_or(Errno::INVAL)?.copy_from_slice(handle);
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: `raw` has the layout of struct file_handle, with as many bytes as it says.
    let fd = unsafe { libc::open_by_handle_at(mount.as_raw_fd(), (&raw mut raw).cast(), flags) };
    // SAFETY: the kernel has just made it, for nobody else.
    if fd >= 0 { Ok(unsafe { OwnedFd::from_raw_fd(fd) }) } else { Err(Errno::from_raw_os_error(errno())) }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// sync_file_range(2).
pub(crate) fn sync_file_range(fd: BorrowedFd<'_>, bytes: &Range<u64>, flags: u32) -> io::Result<()> {
    let (from, len) = (bytes.start as i64, (bytes.end - bytes.start) as i64);
    // SAFETY: a call on an open descriptor, with numbers.
    match unsafe { libc::sync_file_range(fd.as_raw_fd(), from, len, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A question to `/proc/PID/maps`, and its answer (PROCMAP_QUERY, `linux/fs.h`).
#[repr(C)]
#[derive(Default)]
struct MapQuery {
    size: u64,
    flags: u64,
    from: u64,
    start: u64,
    end: u64,
    vma_flags: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    major: u32,
    minor: u32,
    name_size: u32,
    build_id_size: u32,
    name: u64,
    build_id: u64,
}

/// A mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub end: u64,
    pub dev: u64,
    pub ino: u64,
}

/// The first shared writable mapping of a file at or behind an address; `maps` is an open `/proc/PID/maps`.
///
/// # Errors
/// ENOTTY before Linux 6.11, and what the kernel says.
pub(crate) fn next_shared_writable(maps: BorrowedFd<'_>, from: u64) -> io::Result<Option<Mapping>> {
    // _IOWR('f', 17, struct procmap_query)
    const PROCMAP_QUERY: libc::Ioctl = 0xc068_6611;
    const { assert!(size_of::<MapQuery>() == 0x68) };
    const WRITABLE: u64 = 0x02;
    const SHARED: u64 = 0x08;
    const COVERING_OR_NEXT: u64 = 0x10;
    const FILE_BACKED: u64 = 0x20;
    let flags = WRITABLE | SHARED | COVERING_OR_NEXT | FILE_BACKED;
    let mut query = MapQuery { size: size_of::<MapQuery>() as u64, flags, from, ..MapQuery::default() };
    // SAFETY: the kernel reads and writes `size` bytes, which `query` has; without room for a name it writes none.
    if unsafe { libc::ioctl(maps.as_raw_fd(), PROCMAP_QUERY, &raw mut query) } == 0 {
        let dev = rustix::fs::makedev(query.major, query.minor);
        return Ok(Some(Mapping { end: query.end, dev, ino: query.inode }));
    }
    match io::Error::last_os_error() {
        none if none.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        error => Err(error),
    }
}

/// An entry of a robust list (set_robust_list(2)), and its head.
#[repr(C)]
struct Robust {
    next: *mut Robust,
    offset: libc::c_long,
    pending: *mut Robust,
}

/// Has the kernel mark the word when this thread ends, however it does: of a word that is the thread's id what is left
/// is FUTEX_OWNER_DIED. Before it closes the process's files. False if it will not.
///
/// The owner of the word is leaked: the thread may end at any time. This takes the place of the thread's list of robust
/// mutexes: Rust's standard library has none.
pub(crate) fn wiped_at_death<T: Send + Sync + 'static>(
    owner: Arc<T>,
    word: impl FnOnce(&'static T) -> &'static AtomicU32,
) -> bool {
    let owner: &'static Arc<T> = Box::leak(Box::new(owner));
    let word = word(owner);
    let entry =
        Box::into_raw(Box::new(Robust { next: ptr::null_mut(), offset: 0, pending: ptr::null_mut() }));
    let offset = (word.as_ptr() as isize).wrapping_sub(entry as isize) as libc::c_long;
    let head = Box::into_raw(Box::new(Robust { next: entry, offset, pending: ptr::null_mut() }));
    // SAFETY: both were just made, and are leaked: the kernel reads them when the thread ends. The list ends where it
    // began; the word lies at `offset` from its entry.
    unsafe {
        (*entry).next = head;
        libc::syscall(libc::SYS_set_robust_list, head, size_of::<Robust>()) == 0
    }
}

/// Lets all threads of this process allocate from so many arenas. The C library would reserve 64 MiB of addresses for each
/// thread that meets another one; and threads here allocate little.
pub(crate) fn share_arenas(most: i32) {
    // SAFETY: plain integers. It is for later arenas; refused, nothing changes.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, most) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;

    #[test]
    fn the_kernel_wipes_the_word_of_a_thread_that_ended() {
        let word: &'static AtomicU32 = Box::leak(Box::default());
        let thread = std::thread::spawn(move || {
            assert!(wiped_at_death(Arc::new(word), |word| word));
            let me = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            word.store(me, SeqCst);
        });
        thread.join().expect("it ends");
        // The join waits for less than the kernel's last steps.
        while word.load(SeqCst) & 0x3fff_ffff != 0 {
            std::thread::yield_now();
        }
        assert_eq!(word.load(SeqCst), 0x4000_0000, "FUTEX_OWNER_DIED");
    }
}
