//! Children, and the patience to wait for them: nothing here waits for ever.

use std::ffi::{CString, c_int};
use std::time::{Duration, Instant};

/// How long a case waits for one of its children: a disk that others keep busy takes ten seconds, now and then.
const PATIENCE: Duration = Duration::from_secs(60);

/// Forks; the child runs `body` and exits with its result, skipping every destructor.
pub fn fork(body: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: the child only runs `body` and _exit. Cases fork while they have one thread, or do
    // nothing in the child that takes a lock.
    match unsafe { libc::fork() } {
        0 => {
            let status = body();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(status) }
        }
        pid => pid,
    }
}

/// Forks; the child executes `contract child WORDS`.
pub fn execute(words: &[&str]) -> c_int {
    let arguments = Arguments::child(words);
    // SAFETY: a null-terminated vector of C strings.
    fork(|| unsafe { libc::execv(arguments.program(), arguments.vector()) })
}

/// Waits for `pid` and says how it ended: `exit 3`, `signal 9`, or `still running` (then killed).
pub fn ending(pid: c_int) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut status = 0;
        // SAFETY: plain call on our own child.
        match unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } {
            0 if Instant::now() > deadline => {
                kill(pid);
                return format!("still running after {PATIENCE:?}: killed");
            }
            0 => std::thread::sleep(Duration::from_micros(300)),
            -1 => return "no such child".to_owned(),
            _ if libc::WIFSIGNALED(status) => return format!("signal {}", libc::WTERMSIG(status)),
            _ => return format!("exit {}", libc::WEXITSTATUS(status)),
        }
    }
}

/// SIGKILL for one of our children.
pub fn kill(pid: c_int) {
    // SAFETY: a signal to a child that has not been waited for.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// This program's path, for children that execute it again.
pub fn own_path() -> CString {
    let path = std::env::current_exe().expect("the kernel knows our path");
    crate::context::c_path(&path)
}

/// An argument vector for exec: the strings stay alive as long as the value.
pub struct Arguments {
    pointers: Vec<*const libc::c_char>,
    _strings: Vec<CString>,
}

impl Arguments {
    /// `contract child ROLE…`.
    pub fn child(words: &[&str]) -> Arguments {
        let mut strings = vec![own_path(), CString::from(c"child")];
        strings.extend(words.iter().map(|word| CString::new(*word).expect("no NUL in arguments")));
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect();
        Arguments { pointers, _strings: strings }
    }

    /// The program.
    pub fn program(&self) -> *const libc::c_char {
        self.pointers[0]
    }

    /// The null-terminated vector.
    pub fn vector(&self) -> *const *const libc::c_char {
        self.pointers.as_ptr()
    }
}
