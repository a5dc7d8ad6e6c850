//! What the scenes do. Each ends with everything acknowledged.

use super::files::{data_sync, must, sync, write};
use super::{Files, Scene};
use crate::process;
use libc::{O_APPEND, O_CREAT, O_DSYNC, O_RDWR, O_TRUNC};
use std::ffi::c_int;

/// Every scene.
pub fn all() -> Vec<Scene> {
    let scene = |name, act| Scene { name, act };
    vec![
        scene("fsync", fsync),
        scene("fdatasync", fdatasync),
        scene("vectored", vectored),
        scene("append", append),
        scene("dsync", dsync),
        scene("dsync-new", dsync_new),
        scene("dsync-refused", dsync_refused),
        scene("large", large),
        scene("truncate", truncate),
        scene("open-truncate", open_truncate),
        scene("rename", rename),
        scene("rename-over", rename_over),
        scene("unlink", unlink),
        scene("link", link),
        scene("second-process", second_process),
        scene("fork", fork),
        scene("two-writers", two_writers),
        scene("mapping", mapping),
        scene("fallocate", fallocate),
        scene("first-thread-ends", first_thread_ends),
        scene("log-full", log_full),
        scene("sync", super::kernel::sync_all),
        scene("syncfs", super::kernel::sync_file_system),
        scene("msync", super::kernel::sync_mapping),
        scene("aio-fsync", super::kernel::sync_by_aio),
        scene("kernel-dsync", super::kernel::dsync_of_the_kernel),
        scene("descriptors-closed", super::descriptors::closed),
        scene("descriptors-closed-unseen", super::descriptors::closed_unseen),
        scene("descriptors-taken", super::descriptors::taken),
        scene("descriptors-in-children", super::descriptors::in_children),
        scene("small-files", super::descriptors::small_files),
        scene("signals", super::descriptors::signals),
    ]
}

/// The first thread ends, as `pthread_exit` in `main` does it, and another one does the work.
fn first_thread_ends(files: &Files) {
    std::thread::scope(|threads| {
        threads.spawn(|| {
            fsync(files);
            println!("done");
            std::thread::sleep(std::time::Duration::from_secs(300));
            std::process::exit(1);
        });
        // SAFETY: this thread ends, and its stack stays: the other one borrows from it.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    });
}

fn fsync(files: &Files) {
    for round in 0..20 {
        write(files.a, b'a' + round as u8, 8192, round * 4096);
        sync(files.a);
    }
}

fn fdatasync(files: &Files) {
    for round in 0..20 {
        write(files.a, b'a' + round as u8, 5000, round * 5000);
        data_sync(files.a);
        write(files.b, b'z' - round as u8, 100, round * 3000);
    }
    data_sync(files.b);
}

fn vectored(files: &Files) {
    let directory = files.open(".", libc::O_RDONLY);
    // SAFETY: a NUL-terminated name; the vector's parts are static texts.
    unsafe {
        let fd = libc::openat(directory, c"a-wal".as_ptr(), O_RDWR);
        let part = |text: &'static std::ffi::CStr| libc::iovec {
            iov_base: text.as_ptr().cast_mut().cast(),
            iov_len: text.count_bytes(),
        };
        let parts = [part(c"gathered "), part(c"from "), part(c"pieces")];
        must("pwritev", libc::pwritev(fd, parts.as_ptr(), 3, 1000) as i64, 20);
        must("pwritev2", libc::pwritev2(fd, parts.as_ptr(), 3, 9000, libc::RWF_DSYNC) as i64, 20);
        must("lseek", libc::lseek(fd, 70_000, libc::SEEK_SET), 70_000);
        must("writev", libc::writev(fd, parts.as_ptr(), 3) as i64, 20);
        data_sync(fd);
    }
}

fn append(files: &Files) {
    let fd = files.open("a-wal", O_RDWR | O_APPEND);
    for round in 0..50_u8 {
        let line = [b'!' + round; 333];
        // SAFETY: the buffer outlives the call.
        must("write", unsafe { libc::write(fd, line.as_ptr().cast(), 333) } as i64, 333);
        data_sync(fd);
    }
}

fn dsync(files: &Files) {
    let fd = files.open("a-wal", O_RDWR | O_DSYNC);
    for round in 0..10 {
        write(fd, b'0' + round as u8, 8192, round * 8192);
    }
}

/// A log file that did not exist before.
fn dsync_new(files: &Files) {
    let fd = files.open("new-wal", O_RDWR | O_CREAT | O_DSYNC);
    for round in 0..10 {
        write(fd, b'0' + round as u8, 8192, round * 8192);
    }
}

/// A log file that cannot be in the log, since recovery could not write it.
fn dsync_refused(files: &Files) {
    let fd = files.open("refused-wal", O_RDWR | O_CREAT | O_DSYNC);
    // SAFETY: plain call.
    must("fchmod", unsafe { libc::fchmod(fd, 0o444) }.into(), 0);
    for round in 0..10 {
        write(fd, b'0' + round as u8, 8192, round * 8192);
    }
}

fn large(files: &Files) {
    write(files.a, b'l', 1 << 20, 100);
    write(files.b, b'L', (2 << 20) + 17, 5);
    sync(files.a);
    sync(files.b);
}

fn truncate(files: &Files) {
    write(files.a, b'x', 20_000, 0);
    cut(files.a, 5000);
    write(files.a, b'y', 100, 9000);
    sync(files.a);
    // SAFETY: a NUL-terminated path.
    must("truncate", unsafe { libc::truncate(files.path("b-wal").as_ptr(), 100) }.into(), 0);
    cut(files.b, 30_000);
    sync(files.b);
}

fn cut(fd: c_int, length: i64) {
    // SAFETY: plain call.
    must("ftruncate", unsafe { libc::ftruncate(fd, length) }.into(), 0);
}

fn open_truncate(files: &Files) {
    write(files.a, b'x', 30_000, 0);
    sync(files.a);
    let fd = files.open("a-wal", O_RDWR | O_TRUNC);
    write(fd, b'n', 1234, 10);
    sync(fd);
}

fn rename(files: &Files) {
    write(files.a, b'x', 10_000, 0);
    sync(files.a);
    files.rename("a-wal", "c-wal");
    for round in 0..5 {
        write(files.a, b'0' + round as u8, 3000, round * 2000);
        sync(files.a);
    }
}

fn rename_over(files: &Files) {
    write(files.a, b'x', 10_000, 0);
    write(files.b, b'y', 20_000, 0);
    sync(files.a);
    sync(files.b);
    files.rename("a-wal", "b-wal");
    write(files.a, b'z', 500, 700);
    sync(files.a);
}

/// The old file's records must not reach its successor, which may well have its inode number.
fn unlink(files: &Files) {
    for round in 0..5 {
        write(files.a, b'x', 40_000, 0);
        sync(files.a);
        // SAFETY: a NUL-terminated path; nothing else uses the number while it is closed.
        unsafe {
            must("unlink", libc::unlink(files.path("a-wal").as_ptr()).into(), 0);
            libc::close(files.a);
        }
        let fd = files.open("a-wal", O_RDWR | O_CREAT);
        if fd != files.a {
            // SAFETY: moves the new file to the number that the scene keeps using.
            unsafe {
                libc::dup2(fd, files.a);
                libc::close(fd);
            }
        }
        write(files.a, b'0' + round, 5000, 0);
        sync(files.a);
        files.sync_directory();
        write(files.a, b'n', 300, 100);
        sync(files.a);
    }
}

fn link(files: &Files) {
    write(files.a, b'x', 10_000, 0);
    sync(files.a);
    // SAFETY: NUL-terminated paths.
    unsafe {
        must("link", libc::link(files.path("a-wal").as_ptr(), files.path("c-wal").as_ptr()).into(), 0);
        files.sync_directory();
        let second = files.open("c-wal", O_RDWR);
        write(second, b's', 700, 300);
        sync(second);
        write(files.a, b'f', 700, 20_000);
        sync(files.a);
        must("unlink", libc::unlink(files.path("a-wal").as_ptr()).into(), 0);
        files.sync_directory();
        write(second, b'l', 50, 0);
        sync(second);
    }
}

fn second_process(files: &Files) {
    for round in 0..5 {
        write(files.a, b'p', 1000, round * 7000);
        let (fd, offset) = (files.a.to_string(), (round * 7000 + 500).to_string());
        let child = process::execute(&["write", &fd, "c", &offset]);
        assert_eq!(process::ending(child), "exit 0");
        write(files.a, b'P', 100, round * 7000 + 1400);
        sync(files.a);
    }
}

fn fork(files: &Files) {
    for round in 0..5 {
        write(files.a, b'p', 1000, round * 7000);
        let child = process::fork(|| {
            write(files.a, b'c', 1000, round * 7000 + 500);
            sync(files.a);
            0
        });
        assert_eq!(process::ending(child), "exit 0");
    }
    sync(files.a);
}

/// Two processes and four threads write over each other: the log's order must be the files' order.
fn two_writers(files: &Files) {
    let storm = |name: u8| {
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                scope.spawn(move || {
                    for round in 0..150_i64 {
                        let fd = if round % 3 == 0 { files.b } else { files.a };
                        let offset = (round * 37 + i64::from(thread) * 11) % 40 * 512;
                        write(fd, name + thread, 2000 + thread as usize * 100, offset);
                        if round % 4 == 0 {
                            data_sync(fd);
                        }
                    }
                });
            }
        });
    };
    let child = process::fork(|| {
        storm(b'a');
        0
    });
    storm(b'k');
    assert_eq!(process::ending(child), "exit 0");
    sync(files.a);
    sync(files.b);
}

fn mapping(files: &Files) {
    write(files.a, b'x', 10_000, 0);
    sync(files.a);
    // SAFETY: maps our own file, stores inside it, unmaps it.
    unsafe {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let address = libc::mmap(std::ptr::null_mut(), 8192, both, libc::MAP_SHARED, files.a, 0);
        assert_ne!(address, libc::MAP_FAILED);
        libc::memset(address.cast::<u8>().add(500).cast(), i32::from(b'm'), 3000);
        must("msync", libc::msync(address, 8192, libc::MS_SYNC).into(), 0);
        libc::munmap(address, 8192);
    }
    sync(files.a);
    write(files.a, b'y', 500, 1000);
    sync(files.a);
}

fn fallocate(files: &Files) {
    write(files.a, b'x', 40_000, 0);
    sync(files.a);
    // SAFETY: plain calls.
    unsafe {
        let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        must("fallocate", libc::fallocate(files.a, punch, 5000, 10_000).into(), 0);
        must("fallocate", libc::fallocate(files.b, 0, 0, 200_000).into(), 0);
    }
    sync(files.a);
    sync(files.b);
    write(files.a, b'y', 500, 6000);
    write(files.b, b'y', 500, 150_000);
    sync(files.a);
    sync(files.b);
}

/// Several times the smallest pool, so that most of it is written around the log.
fn log_full(files: &Files) {
    for round in 0..120_i64 {
        let fd = if round % 2 == 0 { files.a } else { files.b };
        write(fd, b'0' + (round % 70) as u8, 512 * 1024, round % 16 * 300_000);
        write(fd, b'!', 1000, round * 10_000);
        if round % 5 < 2 {
            data_sync(fd);
        }
    }
    sync(files.a);
    sync(files.b);
}
