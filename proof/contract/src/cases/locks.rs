//! Locks go to the kernel, and nothing done behind the application's back may drop one: closing any
//! descriptor of a file drops all POSIX locks the process holds on it.

use crate::context::{Context, open_quietly};
use crate::process;
use libc::{F_OFD_SETLK, F_SETLK, F_UNLCK, F_WRLCK, LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, O_RDWR};
use std::ffi::c_int;
use std::ptr::null_mut;

fn region(kind: c_int, start: i64, length: i64) -> libc::flock {
    // SAFETY: a zeroed flock is valid.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as i16;
    lock.l_start = start;
    lock.l_len = length;
    lock
}

/// Another program asks with F_GETLK.
fn ask_elsewhere(cx: &Context) {
    cx.executed(&["lock-holder", &cx.path_text("a")]);
}

fn survive_everything_we_do(cx: &Context) {
    let fd = cx.file("a");
    call!(cx, fcntl(fd, F_SETLK, std::ptr::from_ref(&region(F_WRLCK, 0, 0))));
    ask_elsewhere(cx);
    for round in 0..3 {
        cx.pwrite(fd, b'B', 5000, round * 3000);
        cx.fsync(fd);
        cx.fdatasync(fd);
        ask_elsewhere(cx);
    }
    call!(cx, ftruncate(fd, 100));
    call!(cx, fallocate(fd, 0, 0, 20_000));
    call!(cx, rename(cx.path("a").as_ptr(), cx.path("b").as_ptr()));
    cx.fsync(fd);
    call!(cx, rename(cx.path("b").as_ptr(), cx.path("a").as_ptr()));
    cx.fsync(fd);
    ask_elsewhere(cx);
    call!(cx, link(cx.path("a").as_ptr(), cx.path("c").as_ptr()));
    call!(cx, truncate(cx.path("a").as_ptr(), 500));
    cx.pwrite(fd, b'C', 100, 0);
    cx.fsync(fd);
    ask_elsewhere(cx);
    let copy =
        call!(cx, Descriptor, open(cx.plain_path("x").as_ptr(), O_RDWR | libc::O_CREAT, 0o644)) as c_int;
    call!(cx, copy_file_range(fd, null_mut(), copy, null_mut(), 100, 0));
    let address = call!(
        cx,
        Address,
        mmap(null_mut(), 100, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd, 0)
    );
    call!(cx, munmap(address as *mut _, 100));
    cx.fsync(fd);
    ask_elsewhere(cx);
    call!(cx, fcntl(fd, F_SETLK, std::ptr::from_ref(&region(F_UNLCK, 0, 0))));
    ask_elsewhere(cx);
}

fn first_use_keeps_the_lock(cx: &Context) {
    let fd = cx.open(&cx.path("a"), O_RDWR | libc::O_CREAT);
    call!(cx, fcntl(fd, F_SETLK, std::ptr::from_ref(&region(F_WRLCK, 0, 0))));
    cx.pwrite(fd, b'B', 100, 0);
    ask_elsewhere(cx);
    cx.fsync(fd);
    ask_elsewhere(cx);
    cx.pwrite(fd, b'C', 100, 0);
    cx.fsync(fd);
    ask_elsewhere(cx);
}

/// Closing another descriptor of the file drops the lock: bare POSIX, and it must stay so.
fn dropped_by_own_close(cx: &Context, fd: c_int) {
    let other = cx.open(&cx.path("a"), O_RDWR);
    call!(cx, fcntl(fd, F_SETLK, std::ptr::from_ref(&region(F_WRLCK, 0, 0))));
    ask_elsewhere(cx);
    cx.close(other);
    ask_elsewhere(cx);
}

fn regions_between_processes(cx: &Context, fd: c_int) {
    call!(cx, fcntl(fd, F_SETLK, std::ptr::from_ref(&region(F_WRLCK, 0, 100))));
    cx.pwrite(fd, b'p', 100, 0);
    cx.fsync(fd);
    cx.in_child(|| {
        call!(cx, fcntl(fd, F_SETLK, std::ptr::from_ref(&region(F_WRLCK, 50, 10))));
        call!(cx, fcntl(fd, F_SETLK, std::ptr::from_ref(&region(F_WRLCK, 100, 100))));
        cx.pwrite(fd, b'c', 100, 100);
        cx.fsync(fd);
        0
    });
    call!(cx, fcntl(fd, F_SETLK, std::ptr::from_ref(&region(F_WRLCK, 0, 1000))));
}

/// A blocking lock is granted when the holder lets go, and the holder's writes are there.
fn waiting_for_a_lock(cx: &Context, fd: c_int) {
    call!(cx, fcntl(fd, F_SETLK, std::ptr::from_ref(&region(F_WRLCK, 0, 0))));
    let child = process::fork(|| {
        let own = open_quietly(&cx.path("a"), O_RDWR);
        call!(cx, fcntl(own, libc::F_SETLKW, std::ptr::from_ref(&region(F_WRLCK, 0, 0))));
        cx.show(own);
        cx.pwrite(own, b'c', 100, 50);
        cx.fsync(own) as c_int
    });
    std::thread::sleep(std::time::Duration::from_millis(20));
    cx.pwrite(fd, b'p', 100, 0);
    cx.fsync(fd);
    // Not traced: from here on the child writes the trace.
    // SAFETY: a plain call with a live argument.
    let unlocked = unsafe { libc::fcntl(fd, F_SETLK, std::ptr::from_ref(&region(F_UNLCK, 0, 0))) };
    cx.note(process::ending(child));
    cx.note(format_args!("unlocked {unlocked}"));
    cx.show(fd);
}

fn open_file_description_locks(cx: &Context) {
    let (one, two) = (cx.file("a"), cx.open(&cx.path("a"), O_RDWR));
    call!(cx, fcntl(one, F_OFD_SETLK, std::ptr::from_ref(&region(F_WRLCK, 0, 0))));
    cx.pwrite(one, b'B', 100, 0);
    cx.fsync(one);
    call!(cx, fcntl(two, F_OFD_SETLK, std::ptr::from_ref(&region(F_WRLCK, 0, 0))));
    let copy = call!(cx, Descriptor, dup(one)) as c_int;
    cx.close(one);
    call!(cx, fcntl(two, F_OFD_SETLK, std::ptr::from_ref(&region(F_WRLCK, 0, 0))));
    cx.close(copy);
    call!(cx, fcntl(two, F_OFD_SETLK, std::ptr::from_ref(&region(F_WRLCK, 0, 0))));
    cx.write_sync_show(two);
}

fn flock_locks(cx: &Context) {
    let (one, two) = (cx.file("a"), cx.open(&cx.path("a"), O_RDWR));
    call!(cx, flock(one, LOCK_EX | LOCK_NB));
    cx.pwrite(one, b'B', 100, 0);
    cx.fsync(one);
    call!(cx, flock(two, LOCK_SH | LOCK_NB));
    call!(cx, flock(one, LOCK_UN));
    call!(cx, flock(two, LOCK_EX | LOCK_NB));
    cx.close(one);
    cx.write_sync_show(two);
    call!(cx, lockf(two, libc::F_TLOCK, 10));
    cx.fsync(two);
}

/// SQLite's habit: locks and writes by two processes in turn.
fn two_processes_in_turn(cx: &Context, fd: c_int) {
    let children: Vec<c_int> = (0..3_u8)
        .map(|owner| {
            process::fork(|| {
                let own = open_quietly(&cx.path("a"), O_RDWR);
                for _ in 0..30 {
                    // SAFETY: plain calls: lock, read a counter, write it back, sync, unlock.
                    unsafe {
                        libc::fcntl(own, libc::F_SETLKW, std::ptr::from_ref(&region(F_WRLCK, 0, 0)));
                        let mut counter = 0_u64;
                        libc::pread(own, (&raw mut counter).cast(), 8, 9000);
                        counter += u64::from(owner) + 1;
                        libc::pwrite(own, (&raw const counter).cast(), 8, 9000);
                        libc::fdatasync(own);
                        libc::fcntl(own, F_SETLK, std::ptr::from_ref(&region(F_UNLCK, 0, 0)));
                    }
                }
                0
            })
        })
        .collect();
    for child in children {
        cx.note(process::ending(child));
    }
    cx.show(fd);
}

family!("locks" => on_a_file [
    dropped_by_own_close, regions_between_processes, waiting_for_a_lock, two_processes_in_turn,
], others [
    survive_everything_we_do, first_use_keeps_the_lock, open_file_description_locks, flock_locks,
]);
