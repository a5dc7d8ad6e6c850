//! syscall(2) by number: the same call gets the same treatment, whichever door it comes in by.
//!
//! Variadic in C; seven integer arguments travel as seven named ones do, on x86-64 and aarch64.

use core::ffi::{c_int, c_long, c_uint, c_ulong};

use libc::AT_FDCWD;
use seawall_core::{Errno, Scope};

use super::{
    aio, close_dup, directory, entry, fcntl, mmap, names, open, origin, read, sync, truncate_fallocate,
    uring, write,
};
use crate::classify::pass;
use crate::{errno, sys};

entry! {
    fn syscall (nr: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long,
        passes if { !is_ours(nr) }
    {
        errno::long(dispatch(nr, [a, b, c, d, e, f])) as c_long
    }
}

/// True if [`dispatch`] does more than to make the call. Any other may wait for whatever it likes, in libc.
fn is_ours(nr: c_long) -> bool {
    changes(nr) || is_old(nr) || makes_descriptor(nr)
}

fn changes(nr: c_long) -> bool {
    matches!(
        nr,
        libc::SYS_write
            | libc::SYS_pwrite64
            | libc::SYS_writev
            | libc::SYS_pwritev
            | libc::SYS_pwritev2
            | libc::SYS_pread64
            | libc::SYS_preadv
            | libc::SYS_preadv2
            | libc::SYS_fsync
            | libc::SYS_fdatasync
            | libc::SYS_sync
            | libc::SYS_syncfs
            | libc::SYS_msync
            | libc::SYS_sync_file_range
            | libc::SYS_ftruncate
            | libc::SYS_fallocate
            | libc::SYS_sendfile
            | libc::SYS_copy_file_range
            | libc::SYS_splice
            | libc::SYS_io_submit
            | libc::SYS_io_setup
            | libc::SYS_io_uring_setup
            | libc::SYS_io_uring_enter
            | libc::SYS_openat2
            | libc::SYS_openat
            | libc::SYS_truncate
            | libc::SYS_renameat
            | libc::SYS_renameat2
            | libc::SYS_linkat
            | libc::SYS_unlinkat
            | libc::SYS_symlinkat
            | libc::SYS_mkdirat
            | libc::SYS_mknodat
            | libc::SYS_getdents64
            | libc::SYS_close
            | libc::SYS_close_range
            | libc::SYS_dup
            | libc::SYS_dup3
            | libc::SYS_fcntl
            | libc::SYS_ioctl
            | libc::SYS_mmap
            | libc::SYS_munmap
            | libc::SYS_mprotect
            | libc::SYS_mremap
    )
}

#[cfg(target_arch = "x86_64")]
fn is_old(nr: c_long) -> bool {
    matches!(
        nr,
        libc::SYS_open
            | libc::SYS_creat
            | libc::SYS_rename
            | libc::SYS_link
            | libc::SYS_unlink
            | libc::SYS_symlink
            | libc::SYS_rmdir
            | libc::SYS_mkdir
            | libc::SYS_mknod
            | libc::SYS_dup2
    )
}

#[cfg(not(target_arch = "x86_64"))]
fn is_old(_nr: c_long) -> bool {
    false
}

/// # Safety
/// As the system call of that number.
unsafe fn dispatch(nr: c_long, args: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: the caller's, for all of them.
    unsafe {
        if let Some(done) = writes(nr, args) {
            return done;
        }
        if let Some(done) = paths(nr, args).or_else(|| old_paths(nr, args)) {
            return done;
        }
        if let Some(done) = descriptors(nr, args) {
            return done;
        }
        let done = sys::call(nr, args);
        if makes_descriptor(nr) { origin::made(done) } else { done }
    }
}

/// What changes a file's content.
unsafe fn writes(nr: c_long, [a, b, c, d, e, f]: [usize; 6]) -> Option<Result<usize, Errno>> {
    let fd = a as c_int;
    // SAFETY: the caller's.
    let through = |out: usize| pass(out as c_int, || unsafe { sys::call(nr, [a, b, c, d, e, f]) });
    // SAFETY: the caller's.
    Some(unsafe {
        match nr {
            libc::SYS_write => write::plain(fd, b as _, c),
            libc::SYS_pwrite64 => write::at(fd, b as _, c, d as i64),
            libc::SYS_writev => write::vector(fd, b as _, c as c_int, -1, 0),
            libc::SYS_pwritev => write::vector_at(fd, b as _, c as c_int, d as i64),
            libc::SYS_pwritev2 => write::vector(fd, b as _, c as c_int, d as i64, f as c_int),
            libc::SYS_pread64 => read::at(fd, b as _, c, d as i64),
            libc::SYS_preadv => read::vector_at(fd, b as _, c as c_int, d as i64),
            libc::SYS_preadv2 => read::vector(fd, b as _, c as c_int, d as i64, f as c_int),
            libc::SYS_fsync => sync::durable(fd, Scope::Whole).map(|()| 0),
            libc::SYS_fdatasync => sync::durable(fd, Scope::Data).map(|()| 0),
            libc::SYS_sync => {
                sync::everything();
                Ok(0)
            }
            libc::SYS_syncfs => sync::file_system(fd),
            libc::SYS_msync => sync::mapping(a as _, b, c as c_int),
            libc::SYS_sync_file_range => sync::range(fd, b as i64, c as i64, d as _),
            libc::SYS_ftruncate => truncate_fallocate::file(fd, b as i64),
            libc::SYS_fallocate => truncate_fallocate::allocate(fd, b as c_int, c as i64, d as i64),
            libc::SYS_sendfile => through(a),
            libc::SYS_copy_file_range | libc::SYS_splice => through(c),
            libc::SYS_io_submit => {
                aio::submitting(b as c_long, c as _);
                return None;
            }
            libc::SYS_io_setup => aio::context_of(a, b as _),
            libc::SYS_io_uring_setup => uring::setup(a as c_uint, b as _),
            libc::SYS_io_uring_enter => uring::enter([a, b, c, d, e, f]),
            _ => return None,
        }
    })
}

/// What goes by a name, in the forms every architecture has.
unsafe fn paths(nr: c_long, [a, b, c, d, e, _]: [usize; 6]) -> Option<Result<usize, Errno>> {
    let dir = a as c_int;
    // SAFETY: the caller's.
    Some(unsafe {
        match nr {
            // Without O_TRUNC there is nothing to it but its descriptor.
            libc::SYS_openat2 => {
                return open::unseen_truncation(dir, b as _, c as _, || sys::call(nr, [a, b, c, d]));
            }
            libc::SYS_openat => open::at(dir, b as _, c as c_int, d as u32),
            libc::SYS_truncate => truncate_fallocate::by_path(a as _, b as i64),
            libc::SYS_renameat => names::moved(dir, b as _, c as c_int, d as _, 0),
            libc::SYS_renameat2 => names::moved(dir, b as _, c as c_int, d as _, e as c_uint),
            libc::SYS_linkat => names::linked(dir, b as _, c as c_int, d as _, e as c_int),
            libc::SYS_unlinkat => names::removed(dir, b as _, c as c_int),
            libc::SYS_symlinkat => names::pointed(a as _, b as c_int, c as _),
            libc::SYS_mkdirat => names::made_directory(dir, b as _, c as u32),
            libc::SYS_mknodat => names::made_node(dir, b as _, c as u32, d as u64),
            libc::SYS_getdents64 => directory::read(dir, b as _, c),
            _ => return None,
        }
    })
}

/// The forms that only older architectures have.
#[cfg(target_arch = "x86_64")]
unsafe fn old_paths(nr: c_long, [a, b, c, ..]: [usize; 6]) -> Option<Result<usize, Errno>> {
    const CREAT: c_int = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
    // SAFETY: the caller's.
    Some(unsafe {
        match nr {
            libc::SYS_open => open::at(AT_FDCWD, a as _, b as c_int, c as u32),
            libc::SYS_creat => open::at(AT_FDCWD, a as _, CREAT, b as u32),
            libc::SYS_rename => names::moved(AT_FDCWD, a as _, AT_FDCWD, b as _, 0),
            libc::SYS_link => names::linked(AT_FDCWD, a as _, AT_FDCWD, b as _, 0),
            libc::SYS_unlink => names::removed(AT_FDCWD, a as _, 0),
            libc::SYS_symlink => names::pointed(a as _, AT_FDCWD, b as _),
            libc::SYS_rmdir => names::removed(AT_FDCWD, a as _, libc::AT_REMOVEDIR),
            libc::SYS_mkdir => names::made_directory(AT_FDCWD, a as _, b as u32),
            libc::SYS_mknod => names::made_node(AT_FDCWD, a as _, b as u32, c as u64),
            libc::SYS_dup2 => close_dup::onto(a as c_int, b as c_int),
            _ => return None,
        }
    })
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn old_paths(_nr: c_long, _args: [usize; 6]) -> Option<Result<usize, Errno>> {
    let _ = AT_FDCWD;
    None
}

/// What changes the table of descriptors, or mappings.
unsafe fn descriptors(nr: c_long, [a, b, c, d, e, f]: [usize; 6]) -> Option<Result<usize, Errno>> {
    let (fd, second) = (a as c_int, b as c_int);
    Some(match nr {
        libc::SYS_close => close_dup::shut(fd),
        libc::SYS_close_range => close_dup::shut_range(a as c_uint, b as c_uint, c as c_uint),
        // SAFETY: the caller's.
        libc::SYS_dup => close_dup::copied(fd, unsafe { sys::call(nr, [a]) }),
        libc::SYS_dup3 => close_dup::onto_with(fd, second, c as c_int),
        libc::SYS_fcntl => fcntl::control(fd, second, c),
        libc::SYS_ioctl => fcntl::device(fd, b as c_ulong, c),
        libc::SYS_mmap => mmap::map(a as _, b, c as c_int, d as c_int, e as c_int, f as i64),
        libc::SYS_munmap => mmap::unmap(a as _, b),
        libc::SYS_mprotect => mmap::protect(a as _, b, c as c_int),
        libc::SYS_mremap => mmap::remap(a as _, b, c, d as c_int, e as _),
        _ => return None,
    })
}

/// Calls whose result is a descriptor.
fn makes_descriptor(nr: c_long) -> bool {
    matches!(
        nr,
        libc::SYS_socket
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_eventfd2
            | libc::SYS_signalfd4
            | libc::SYS_timerfd_create
            | libc::SYS_epoll_create1
            | libc::SYS_inotify_init1
            | libc::SYS_fanotify_init
            | libc::SYS_memfd_create
            | libc::SYS_memfd_secret
            | libc::SYS_pidfd_open
            | libc::SYS_pidfd_getfd
            | libc::SYS_openat2
            | libc::SYS_open_by_handle_at
            | libc::SYS_open_tree
            | libc::SYS_fsopen
            | libc::SYS_fsmount
            | libc::SYS_fspick
            | libc::SYS_userfaultfd
            | libc::SYS_perf_event_open
            | libc::SYS_mq_open
    )
}
