//! Everything that hands a descriptor to the application: whatever the number meant before is forgotten.

use core::ffi::{c_char, c_int, c_uint, c_void};

use libc::{FILE, mode_t, msghdr, sockaddr, socklen_t};
use seawall_core::Errno;

use super::{entry, point, real_or};
use crate::sys::unsafe_call;
use crate::{classify, errno, fdtable, named, socket, unseen};

/// A descriptor is new to the application.
#[inline]
pub fn fresh(fd: c_int) {
    fdtable::reset(fd);
    if unseen::may_be_any() {
        classify::hold_for_life(fd);
    }
}

/// The same for a call's result.
pub fn made(result: Result<usize, Errno>) -> Result<usize, Errno> {
    result.inspect(|fd| fresh(*fd as c_int))
}

fn new(result: Result<usize, Errno>) -> c_int {
    errno::int(made(result))
}

fn given(fd: c_int) -> c_int {
    if fd >= 0 {
        fresh(fd);
    }
    fd
}

/// Two descriptors in an array.
///
/// # Safety
/// On success `fds` names two.
unsafe fn pair(fds: *const c_int, result: Result<usize, Errno>) -> c_int {
    if result.is_ok() {
        // SAFETY: the kernel has just filled them.
        unsafe {
            fresh(*fds);
            fresh(*fds.add(1));
        }
    }
    errno::int(result)
}

entry! {
    fn socket (domain: c_int, kind: c_int, protocol: c_int) -> c_int {
        new(unsafe_call!(SYS_socket, domain, kind, protocol))
    }
    fn socketpair (domain: c_int, kind: c_int, protocol: c_int, fds: *mut c_int) -> c_int {
        pair(fds, unsafe_call!(SYS_socketpair, domain, kind, protocol, fds))
    }
    fn pipe | __pipe (fds: *mut c_int) -> c_int { pair(fds, unsafe_call!(SYS_pipe2, fds, 0)) }
    fn pipe2 (fds: *mut c_int, flags: c_int) -> c_int { pair(fds, unsafe_call!(SYS_pipe2, fds, flags)) }
    fn eventfd (count: c_uint, flags: c_int) -> c_int { new(unsafe_call!(SYS_eventfd2, count, flags)) }
    fn signalfd (fd: c_int, mask: *const c_void, flags: c_int) -> c_int {
        const KERNEL_SIGSET_BYTES: usize = 8;
        new(unsafe_call!(SYS_signalfd4, fd, mask, KERNEL_SIGSET_BYTES, flags))
    }
    fn timerfd_create (clock: c_int, flags: c_int) -> c_int { new(unsafe_call!(SYS_timerfd_create, clock, flags)) }
    fn epoll_create (size: c_int) -> c_int {
        if size <= 0 {
            return errno::int(Err(Errno::INVAL));
        }
        new(unsafe_call!(SYS_epoll_create1, 0))
    }
    fn epoll_create1 (flags: c_int) -> c_int { new(unsafe_call!(SYS_epoll_create1, flags)) }
    fn inotify_init () -> c_int { new(unsafe_call!(SYS_inotify_init1, 0)) }
    fn inotify_init1 (flags: c_int) -> c_int { new(unsafe_call!(SYS_inotify_init1, flags)) }
    fn fanotify_init (flags: c_uint, event_flags: c_uint) -> c_int {
        new(unsafe_call!(SYS_fanotify_init, flags, event_flags))
    }
    fn memfd_create (name: *const c_char, flags: c_uint) -> c_int { new(unsafe_call!(SYS_memfd_create, name, flags)) }
    fn pidfd_open (pid: c_int, flags: c_uint) -> c_int { new(unsafe_call!(SYS_pidfd_open, pid, flags)) }
    fn pidfd_getfd (pidfd: c_int, fd: c_int, flags: c_uint) -> c_int {
        new(unsafe_call!(SYS_pidfd_getfd, pidfd, fd, flags))
    }
    fn fsopen (name: *const c_char, flags: c_uint) -> c_int { new(unsafe_call!(SYS_fsopen, name, flags)) }
    fn fsmount (fd: c_int, flags: c_uint, attributes: c_uint) -> c_int {
        new(unsafe_call!(SYS_fsmount, fd, flags, attributes))
    }
    fn fspick (dir: c_int, path: *const c_char, flags: c_uint) -> c_int {
        new(unsafe_call!(SYS_fspick, dir, path, flags))
    }
    fn open_tree (dir: c_int, path: *const c_char, flags: c_uint) -> c_int {
        new(unsafe_call!(SYS_open_tree, dir, path, flags))
    }
}

point! {
    fn accept (fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int,
        passes if { true } then |made| { given(made); }
    {
        new(unsafe_call!(SYS_accept, fd, address, len))
    }
    fn accept4 (fd: c_int, address: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int,
        passes if { true } then |made| { given(made); }
    {
        new(unsafe_call!(SYS_accept4, fd, address, len, flags))
    }
    fn recvmsg (fd: c_int, message: *mut msghdr, flags: c_int) -> isize,
        passes if { true } then |received| { came(message, (received >= 0).into()) }
    {
        let received = unsafe_call!(SYS_recvmsg, fd, message, flags);
        came(message, received.is_ok().into());
        errno::long(received)
    }
    fn recvmmsg (
        fd: c_int, messages: *mut libc::mmsghdr, n: c_uint, flags: c_int, limit: *mut libc::timespec
    ) -> c_int, passes if { true } then |received| { all_came(messages, received) } {
        let received = errno::int(unsafe_call!(SYS_recvmmsg, fd, messages, n, flags, limit));
        all_came(messages, received);
        received
    }
}

/// Descriptors may have come with `n` messages: one or none.
///
/// # Safety
/// As many were received.
unsafe fn came(message: *const msghdr, n: usize) {
    if n > 0 {
        // SAFETY: the caller's.
        unsafe { socket::rights(&*message, |_, fd| fresh(fd)) };
    }
}

/// The same of an array.
///
/// # Safety
/// As above.
unsafe fn all_came(messages: *const libc::mmsghdr, n: c_int) {
    for i in 0..n.max(0) as usize {
        // SAFETY: the caller's.
        unsafe { came(&raw const (*messages.add(i)).msg_hdr, 1) };
    }
}

/// Functions that only libc has.
macro_rules! from_libc {
    ($(fn $name:ident($($arg:ident: $kind:ty),*);)+) => { entry! {
        $(fn $name ($($arg: $kind),*) -> c_int {
            given(real_or!(-1, crate::real::c_name(concat!(stringify!($name), "\0")), fn($($arg: $kind),*) -> c_int))
        })+
    } };
}

/// Those that make a file at a path which they make up.
macro_rules! from_template {
    ($(fn $name:ident($($arg:ident: $kind:ty),*);)+) => { entry! {
        $(fn $name (template: *mut c_char, $($arg: $kind),*) -> c_int {
            let call = || real_or!(-1, crate::real::c_name(concat!(stringify!($name), "\0")),
                fn(template: *mut c_char, $($arg: $kind),*) -> c_int);
            given(named::making_up(template, call))
        })+
    } };
}

from_template! {
    fn mkstemp();
    fn mkstemp64();
    fn mkostemp(flags: c_int);
    fn mkostemp64(flags: c_int);
    fn mkstemps(suffix: c_int);
    fn mkstemps64(suffix: c_int);
    fn mkostemps(suffix: c_int, flags: c_int);
    fn mkostemps64(suffix: c_int, flags: c_int);
}

from_libc! {
    fn shm_open(name: *const c_char, flags: c_int, mode: mode_t);
    fn posix_openpt(flags: c_int);
    fn getpt();
    fn mq_open(name: *const c_char, flags: c_int, mode: mode_t, attributes: *const c_void);
    fn __mq_open_2(name: *const c_char, flags: c_int);
    fn dirfd(dir: *mut libc::DIR);
    fn fileno(stream: *mut FILE);
    fn fileno_unlocked(stream: *mut FILE);
    fn rcmd(host: *mut *mut c_char, port: c_uint, local: *const c_char, remote: *const c_char, command: *const c_char, err: *mut c_int);
    fn rcmd_af(host: *mut *mut c_char, port: c_uint, local: *const c_char, remote: *const c_char, command: *const c_char, err: *mut c_int, family: c_uint);
    fn rexec(host: *mut *mut c_char, port: c_int, user: *const c_char, password: *const c_char, command: *const c_char, err: *mut c_int);
    fn rexec_af(host: *mut *mut c_char, port: c_int, user: *const c_char, password: *const c_char, command: *const c_char, err: *mut c_int, family: c_uint);
    fn rresvport(port: *mut c_int);
    fn rresvport_af(port: *mut c_int, family: c_uint);
}

entry! {
    fn openpty (main: *mut c_int, sub: *mut c_int, name: *mut c_char, settings: *const c_void, size: *const c_void) -> c_int {
        let done = real_or!(-1, c"openpty",
            fn(main: *mut c_int, sub: *mut c_int, name: *mut c_char, settings: *const c_void, size: *const c_void) -> c_int);
        if done == 0 {
            fresh(*main);
            fresh(*sub);
        }
        done
    }

    /// Puts a terminal onto 0, 1 and 2 and closes its own number.
    fn login_tty (fd: c_int) -> c_int {
        let done = real_or!(-1, c"login_tty", fn(fd: c_int) -> c_int);
        [0, 1, 2, fd].into_iter().for_each(fresh);
        done
    }
}
