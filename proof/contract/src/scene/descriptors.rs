//! What an application does to descriptors that it does not know, and to threads: whatever the log keeps among them
//! must not be missed.

use super::files::{data_sync, sync, write};
use super::{Files, raw};
use crate::process;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};

/// Beyond any number that is in use.
const END: c_int = 1100;

fn others(files: &Files) -> impl Iterator<Item = c_int> {
    let known = [files.a, files.b];
    (3..END).filter(move |fd| !known.contains(fd))
}

fn rounds(files: &Files, first: u8) {
    for round in 0..5_u8 {
        write(files.a, first + round, 3000, i64::from(round) * 2000);
        sync(files.a);
        write(files.b, first + round, 300, i64::from(round) * 200);
        data_sync(files.b);
    }
}

/// The ways of daemons: one by one, by a range, from a number on.
pub fn closed(files: &Files) {
    for fd in others(files) {
        // SAFETY: most are not open, and nobody here misses the others.
        unsafe { libc::close(fd) };
    }
    rounds(files, b'a');
    let above = files.a.max(files.b) as c_uint + 1;
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_close_range, above, c_uint::MAX, 0) };
    rounds(files, b'f');
    // SAFETY: as above.
    unsafe { libc::close_range(above, c_uint::MAX, 0) };
    rounds(files, b'k');
    if let Some(address) = crate::call::symbol(c"closefrom") {
        // SAFETY: glibc's own signature.
        let closefrom =
            unsafe { std::mem::transmute::<*mut libc::c_void, unsafe extern "C" fn(c_int)>(address) };
        // SAFETY: as above.
        unsafe { closefrom(above as c_int) };
    }
    rounds(files, b'p');
}

/// By the program's own instructions, and something else is there then.
pub fn closed_unseen(files: &Files) {
    others(files).for_each(raw::close);
    rounds(files, b'a');
    others(files).for_each(raw::close);
    let other = files.open("other", libc::O_RDWR | libc::O_CREAT);
    sync(other);
    files.sync_directory();
    for fd in 900..END {
        // SAFETY: the numbers are nobody's.
        unsafe { libc::syscall(libc::SYS_dup3, other, fd, 0) };
    }
    rounds(files, b'f');
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut std::fs::File::open("/proc/self/fd/1000").expect("ours"), &mut text)
        .expect("readable");
    assert_eq!(text, [], "something was written to a file that happened to be there");
}

/// Every number that there is gets another meaning, while threads sync.
pub fn taken(files: &Files) {
    let done = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for fd in [files.a, files.b] {
            let done = &done;
            scope.spawn(move || {
                let mut round = 0;
                while done.load(Relaxed) == 0 || round < 50 {
                    write(fd, b'0' + (round % 70) as u8, 2000, round % 20 * 1000);
                    data_sync(fd);
                    round += 1;
                }
            });
        }
        for fd in others(files).chain(others(files)) {
            // SAFETY: the numbers are nobody's that this process knows.
            unsafe { libc::dup2(files.a, fd) };
        }
        done.store(1, Relaxed);
    });
    for fd in others(files) {
        // SAFETY: ours from above, or not open.
        unsafe { libc::close(fd) };
    }
    rounds(files, b'a');
}

/// By fork, in a child's child, and after an exec.
pub fn in_children(files: &Files) {
    rounds(files, b'a');
    let child = process::fork(|| {
        rounds(files, b'f');
        let grandchild = process::fork(|| {
            closed(files);
            0
        });
        assert_eq!(process::ending(grandchild), "exit 0");
        let arguments = process::Arguments::child(&["write", &files.a.to_string(), "e", "500"]);
        // SAFETY: a null-terminated vector of C strings.
        unsafe { libc::execv(arguments.program(), arguments.vector()) }
    });
    assert_eq!(process::ending(child), "exit 0");
    rounds(files, b'u');
}

/// The process may write no file as long as the log; the default of SIGXFSZ would kill it.
pub fn small_files(files: &Files) {
    rounds(files, b'a');
    let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: plain call.
    super::files::must(
        "setrlimit",
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }.into(),
        0,
    );
    rounds(files, b'f');
}

static IN_HANDLER: AtomicI32 = AtomicI32::new(-1);

extern "C" fn handler(_signal: c_int) {
    let page = [b'h'; 700];
    let fd = IN_HANDLER.load(Relaxed);
    // SAFETY: write and fsync may be called here; the buffer outlives the call.
    unsafe {
        libc::pwrite(fd, page.as_ptr().cast(), page.len(), 40_000);
        libc::fdatasync(fd);
    }
}

/// A handler syncs the file that its own thread is syncing.
pub fn signals(files: &Files) {
    IN_HANDLER.store(files.a, Relaxed);
    // SAFETY: a handler of the right type, a timer of the process's own.
    unsafe {
        libc::signal(libc::SIGALRM, handler as extern "C" fn(c_int) as usize);
        let every = libc::timeval { tv_sec: 0, tv_usec: 300 };
        let timer = libc::itimerval { it_interval: every, it_value: every };
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
    for _ in 0..40 {
        rounds(files, b'A');
    }
    // SAFETY: as above.
    unsafe {
        let none = std::mem::zeroed::<libc::itimerval>();
        libc::setitimer(libc::ITIMER_REAL, &raw const none, std::ptr::null_mut());
    }
    rounds(files, b'a');
}
