//! The few system calls that we make for ourselves, with types.

use core::ffi::{CStr, c_int, c_void};

use rustix::fd::BorrowedFd;
use seawall_core::{Errno, Scope};

use super::call::{call, unsafe_call};

/// True if what is at the path, if that is no symbolic link, has this extended attribute.
pub fn has_attribute(path: &CStr, name: &CStr) -> bool {
    unsafe_call!(SYS_lgetxattr, path.as_ptr(), name.as_ptr(), 0, 0).is_ok()
}

/// close(2) of a descriptor of our own.
pub fn close(fd: c_int) {
    let _ = unsafe_call!(SYS_close, fd);
}

/// fsync(2) or fdatasync(2).
pub fn sync(fd: c_int, scope: Scope) -> Result<(), Errno> {
    match scope {
        Scope::Data => unsafe_call!(SYS_fdatasync, fd).map(drop),
        Scope::Whole => unsafe_call!(SYS_fsync, fd).map(drop),
    }
}

/// How many pages of this stretch of a file are in the page cache: cachestat(2).
pub fn cached_pages(fd: c_int, from: u64, len: u64) -> Result<u64, Errno> {
    const SYS_CACHESTAT: core::ffi::c_long = 451;
    let (range, mut stat) = ([from, len], [0u64; 5]);
    let arguments = [fd as usize, range.as_ptr() as usize, stat.as_mut_ptr() as usize, 0];
    // SAFETY: the kernel reads two words of `range` and writes five of `stat`, which both live.
    unsafe { call(SYS_CACHESTAT, arguments) }.map(|_| stat[0])
}

/// fcntl(F_GETFL).
pub fn flags(fd: c_int) -> Result<c_int, Errno> {
    unsafe_call!(SYS_fcntl, fd, libc::F_GETFL).map(|flags| flags as c_int)
}

/// openat(2).
pub fn openat(dir: c_int, path: &CStr, flags: c_int, mode: libc::mode_t) -> Result<c_int, Errno> {
    unsafe_call!(SYS_openat, dir, path.as_ptr(), flags, mode).map(|fd| fd as c_int)
}

/// The directory that a path's last part is in, by O_PATH, and that part.
pub fn parent_of(dir: c_int, path: &CStr) -> Option<(c_int, &[u8])> {
    let bytes = path.to_bytes();
    let split = base_at(bytes);
    let (parent, base) = bytes.split_at(split);
    let mut room = [0; libc::PATH_MAX as usize];
    let parent = match room.get_mut(..split) {
        Some(copy) if split > 0 => {
            copy.copy_from_slice(parent);
            CStr::from_bytes_until_nul(&room).ok()?
        }
        _ => c".",
    };
    let flags = libc::O_PATH | libc::O_CLOEXEC | libc::O_DIRECTORY;
    openat(dir, parent, flags, 0).ok().map(|fd| (fd, base))
}

/// Where a path's last part begins.
pub fn base_at(path: &[u8]) -> usize {
    path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1)
}

/// True if these paths are of one directory by the same words.
pub fn are_beside(one: &CStr, other: &CStr) -> bool {
    let (one, other) = (one.to_bytes(), other.to_bytes());
    one[..base_at(one)] == other[..base_at(other)]
}

/// True if a file that we make could have this owner: it is ours, or we may give it away.
pub fn would_own(uid: libc::uid_t) -> bool {
    unsafe_call!(SYS_geteuid).is_ok_and(|me| me == 0 || me == uid as usize)
}

/// getpid(2): some 150 ns, so not for the hot path.
pub fn getpid() -> u32 {
    unsafe_call!(SYS_getpid).map_or(0, |pid| pid as u32)
}

/// Nanoseconds of a clock.
pub fn now_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let _ = unsafe_call!(SYS_clock_gettime, clock, &raw mut now);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleeps, if no signal comes.
pub fn nap_ns(ns: u64) {
    let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
    let _ = unsafe_call!(SYS_nanosleep, &raw const time, 0);
}

/// The soft limit of a resource.
pub fn limit(resource: u32) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    match unsafe_call!(SYS_prlimit64, 0, resource, 0, &raw mut limit) {
        Ok(_) => limit.rlim_cur,
        Err(_) => u64::MAX,
    }
}

/// The name of an open file, from /proc; `None` if it does not fit or there is none.
pub fn name_of(fd: c_int, room: &mut [u8; libc::PATH_MAX as usize]) -> Option<&[u8]> {
    let mut link = [0; 32];
    let link = proc_link(fd, &mut link)?;
    let len =
        unsafe_call!(SYS_readlinkat, libc::AT_FDCWD, link.as_ptr(), room.as_mut_ptr(), room.len()).ok()?;
    room.get(..len).filter(|_| len < libc::PATH_MAX as usize)
}

/// A part of a path as a path of its own.
pub fn copied<'a>(part: &[u8], room: &'a mut [u8; libc::PATH_MAX as usize]) -> Option<&'a CStr> {
    room.get_mut(..part.len())?.copy_from_slice(part);
    CStr::from_bytes_until_nul(room).ok()
}

/// "/proc/self/fd/N".
pub fn proc_link(fd: c_int, room: &mut [u8; 32]) -> Option<&CStr> {
    const PREFIX: &[u8] = b"/proc/self/fd/";
    room[..PREFIX.len()].copy_from_slice(PREFIX);
    let (mut digits, mut n, mut rest) = ([0u8; 10], 0, u32::try_from(fd).ok()?);
    loop {
        digits[n] = b'0' + (rest % 10) as u8;
        n += 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    for i in 0..n {
        room[PREFIX.len() + i] = digits[n - 1 - i];
    }
    room[PREFIX.len() + n] = 0;
    CStr::from_bytes_until_nul(room).ok()
}

/// Calls `op` with so many bytes of zeros, in pages of their own. `None`: there is no memory.
pub fn with_pages<R>(bytes: usize, op: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let at = unsafe_call!(SYS_mmap, 0, bytes, access, kind, usize::MAX, 0).ok()?;
    // SAFETY: a fresh mapping of that length, readable and writable, of which nobody else knows.
    let done = op(unsafe { core::slice::from_raw_parts_mut(at as *mut u8, bytes) });
    let _ = unsafe_call!(SYS_munmap, at, bytes);
    Some(done)
}

/// The calling thread.
pub fn gettid() -> u32 {
    unsafe_call!(SYS_gettid).unwrap_or(0) as u32
}

/// A handler of SA_SIGINFO.
pub type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Makes `handler` handle `signal`. Returns what handled it before; `None` if the kernel refuses.
pub fn handle(signal: c_int, handler: Handler) -> Option<libc::sigaction> {
    // SAFETY: all-zero is a valid `sigaction`, and the call gets live ones. The handler has the type that
    // SA_SIGINFO asks for.
    unsafe {
        let mut before: libc::sigaction = core::mem::zeroed();
        let mut ours: libc::sigaction = core::mem::zeroed();
        ours.sa_sigaction = handler as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        (libc::sigaction(signal, &raw const ours, &raw mut before) == 0).then_some(before)
    }
}

/// Gives `signal` back to the kernel.
pub fn handle_by_default(signal: c_int) {
    // SAFETY: all-zero is a valid `sigaction`: SIG_DFL, no flags, an empty mask.
    unsafe {
        let default: libc::sigaction = core::mem::zeroed();
        libc::sigaction(signal, &raw const default, core::ptr::null_mut());
    }
}

/// Writes a line about ourselves to standard error, in one call.
pub fn say(parts: &[&str]) {
    let mut line = [0u8; 512];
    let mut len = 0;
    for part in ["seawall: "].iter().chain(parts).chain(&["\n"]) {
        let n = part.len().min(line.len() - len);
        line[len..len + n].copy_from_slice(&part.as_bytes()[..n]);
        len += n;
    }
    let _ = unsafe_call!(SYS_write, 2, line.as_ptr(), len);
}

/// A descriptor of the application as the engine wants it.
pub fn borrow<'a>(fd: c_int) -> BorrowedFd<'a> {
    debug_assert!(fd >= 0);
    // SAFETY: not -1 (classified descriptors are open); the application keeps it open for the length of its
    // own call, and if it does not, the kernel says EBADF.
    unsafe { BorrowedFd::borrow_raw(fd) }
}
