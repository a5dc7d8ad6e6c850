//! Signals: held back while a thread has something that its own handlers would wait for; whether a thread is gone; and
//! the end of a program that nobody listens to any more.

use core::mem::MaybeUninit;

/// All signals of this thread are held back until this is dropped.
pub struct HeldBack {
    /// What was held back before. `None`: the kernel refused, which it does for no reason that is known.
    before: Option<libc::sigset_t>,
}

impl HeldBack {
    /// Begins.
    pub fn all() -> Self {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: both are room for a set; the first is filled before it is read, the second by success.
        let done = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr())
        };
        // SAFETY: filled, as it says.
        Self { before: (done == 0).then(|| unsafe { before.assume_init() }) }
    }
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: a set that the kernel gave us; nothing is written.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, core::ptr::null_mut()) };
        }
    }
}

/// True if this thread of this process has ended; one that nobody waited for yet has not.
pub fn is_gone(process: i32, thread: i32) -> bool {
    // SAFETY: the address is this thread's errno, valid as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above; signal 0 asks and sends nothing.
    unsafe {
        let before = *errno;
        let gone = libc::syscall(libc::SYS_tgkill, process, thread, 0) == -1 && *errno == libc::ESRCH;
        *errno = before;
        gone
    }
}

/// For programs that print: whoever reads (`| head`) may stop reading, and the next line ends us, as it ends others.
/// Rust ignores that signal, and then a line that cannot be printed is a panic.
///
/// Not for programs that others depend on: a socket whose other end is gone ends them as well, unless each send says
/// MSG_NOSIGNAL.
pub fn end_at_a_closed_pipe() {
    // SAFETY: the default action is no function of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("readable");
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("a mask");
        u64::from_str_radix(line.trim(), 16).expect("a number")
    }

    #[test]
    fn a_thread_is_gone_when_it_has_ended_and_its_process_has_not() {
        let me = std::process::id() as i32;
        // SAFETY: gettid takes nothing and always succeeds.
        let tid = || unsafe { libc::syscall(libc::SYS_gettid) } as i32;
        assert!(!is_gone(me, tid()));
        let other = std::thread::spawn(tid).join().expect("a thread");
        while !is_gone(me, other) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn they_are_held_back_and_let_go() {
        let before = blocked();
        {
            let _held = HeldBack::all();
            let usr1 = 1 << (libc::SIGUSR1 - 1);
            assert_eq!(blocked() & usr1, usr1);
            let _again = HeldBack::all();
        }
        assert_eq!(blocked(), before);
    }
}
