//! fork: the child is another client. vfork, exec and posix_spawn are libc's own: a vfork child is recognised by its
//! process id, and a new program starts with an empty table.

use core::ffi::{c_char, c_int, c_void};

use super::origin::fresh;
use super::{entry, real_or};
use crate::{cached, classify, holds, io_uring, owner, session, unseen};

type Pid = libc::pid_t;

entry! {
    fn fork | __fork () -> Pid {
        before();
        after(real_or!(-1, c"fork", fn() -> Pid))
    }

    fn _Fork () -> Pid {
        before();
        after(real_or!(-1, c"_Fork", fn() -> Pid))
    }

    fn forkpty (main: *mut c_int, name: *mut c_char, settings: *const c_void, size: *const c_void) -> Pid {
        before();
        let pid = after(real_or!(-1, c"forkpty",
            fn(main: *mut c_int, name: *mut c_char, settings: *const c_void, size: *const c_void) -> Pid));
        match pid {
            0 => [0, 1, 2].into_iter().for_each(fresh),
            1.. => fresh(*main),
            _ => {}
        }
        pid
    }

    /// Forks, ends the parent, and puts /dev/null onto 0, 1 and 2.
    fn daemon (keep_directory: c_int, keep_descriptors: c_int) -> c_int {
        before();
        let done = real_or!(-1, c"daemon", fn(keep_directory: c_int, keep_descriptors: c_int) -> c_int);
        if done == 0 {
            after(0);
            [0, 1, 2].into_iter().for_each(fresh);
        }
        done
    }
}

/// The child inherits what is held.
fn before() {
    holds::before_fork();
    cached::before_fork();
}

/// In the child, a new identity, and what it inherited is held in its own name.
pub fn after(pid: Pid) -> Pid {
    if pid == 0 && !session::is_off() {
        owner::forked();
        holds::after_fork();
        classify::hold_again();
        if unseen::may_be_any() {
            io_uring::hold_all();
        }
    }
    pid
}
