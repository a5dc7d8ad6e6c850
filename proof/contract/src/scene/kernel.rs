//! What the kernel makes durable by itself: newer than what the log's device last received, where that is a device.

use super::files::{must, sync, write};
use super::{Files, raw};
use libc::{O_DSYNC, O_RDWR};

/// A record that is durable, and a newer one over it that is not yet.
fn two_versions(files: &Files) {
    write(files.a, b'1', 9000, 100);
    sync(files.a);
    write(files.a, b'2', 9000, 100);
}

pub fn sync_all(files: &Files) {
    two_versions(files);
    // SAFETY: plain call.
    unsafe { libc::sync() };
}

pub fn sync_file_system(files: &Files) {
    two_versions(files);
    // SAFETY: plain call.
    must("syncfs", unsafe { libc::syncfs(files.b) }.into(), 0);
}

/// A mapping that only reads leaves the file in the log.
pub fn sync_mapping(files: &Files) {
    // SAFETY: maps our own file, and leaves it mapped.
    let at =
        unsafe { libc::mmap(std::ptr::null_mut(), 65_536, libc::PROT_READ, libc::MAP_SHARED, files.a, 0) };
    assert_ne!(at, libc::MAP_FAILED);
    two_versions(files);
    // SAFETY: mapped above.
    must("msync", unsafe { libc::msync(at, 65_536, libc::MS_SYNC) }.into(), 0);
}

pub fn sync_by_aio(files: &Files) {
    two_versions(files);
    // SAFETY: all-zero is a valid request; it lives until it has ended.
    unsafe {
        let mut request: libc::aiocb = std::mem::zeroed();
        request.aio_fildes = files.a;
        must("aio_fsync", libc::aio_fsync(libc::O_SYNC, &raw mut request).into(), 0);
        while libc::aio_error(&raw const request) == libc::EINPROGRESS {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        must("aio_return", libc::aio_return(&raw mut request) as i64, 0);
    }
}

/// A descriptor that was opened unseen, and kept its O_DSYNC.
pub fn dsync_of_the_kernel(files: &Files) {
    write(files.a, b'1', 9000, 100);
    sync(files.a);
    let fd = raw::open(&files.path("a-wal"), O_RDWR | O_DSYNC);
    write(fd, b'2', 9000, 100);
}
