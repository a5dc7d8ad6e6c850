//! The programs that cases execute: each plays one role and answers by its exit status.

use crate::context::open_quietly;
use std::ffi::{CString, c_int};
use std::time::Duration;

/// Exit status of a child whose call failed.
const FAILED: c_int = 90;

/// Plays `role`; exits the process.
pub fn play(role: &str, words: &[&str]) -> Result<(), String> {
    let status = match (role, words) {
        ("write", [fd, fill, offset]) => write_at(number(fd)?, fill, number(offset)?),
        ("append", [fd, fill]) => append(number(fd)?, fill),
        ("sync", [path]) => sync_only(path),
        ("lock-holder", [path]) => {
            print_lock_holder(path);
            return Ok(());
        }
        ("truncate", [path, length]) => truncate(path, number(length)?),
        ("constructed", [path]) => constructed(path),
        ("sleep", []) => {
            std::thread::sleep(Duration::from_secs(60));
            0
        }
        _ => return Err(format!("no child role `{role}` with {} arguments", words.len())),
    };
    std::process::exit(status)
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("`{word}` is not a number"))
}

fn fill_page(fill: &str) -> Vec<u8> {
    vec![fill.bytes().next().unwrap_or(b'?'); 1000]
}

/// Writes 1000 bytes at `offset` through an inherited descriptor and syncs it.
fn write_at(fd: c_int, fill: &str, offset: i64) -> c_int {
    let page = fill_page(fill);
    // SAFETY: the buffer outlives the call.
    let written = unsafe { libc::pwrite(fd, page.as_ptr().cast(), page.len(), offset) };
    // SAFETY: plain call.
    let synced = unsafe { libc::fdatasync(fd) };
    if written == page.len() as isize && synced == 0 { 0 } else { FAILED }
}

/// Writes 1000 bytes at the shared offset of an inherited descriptor.
fn append(fd: c_int, fill: &str) -> c_int {
    let page = fill_page(fill);
    // SAFETY: the buffer outlives the call.
    let written = unsafe { libc::write(fd, page.as_ptr().cast(), page.len()) };
    if written == page.len() as isize { 0 } else { FAILED }
}

/// Opens the file read-only and syncs it: this process never wrote it.
fn sync_only(path: &str) -> c_int {
    let Ok(path) = CString::new(path) else { return FAILED };
    let fd = open_quietly(&path, libc::O_RDONLY);
    // SAFETY: plain calls on our own descriptor.
    let synced = unsafe { (libc::fsync(fd), libc::fdatasync(fd)) };
    if fd >= 0 && synced == (0, 0) { 0 } else { FAILED }
}

/// Says whether somebody else holds a write lock on the file.
fn print_lock_holder(path: &str) {
    let path = CString::new(path).unwrap_or_default();
    let fd = open_quietly(&path, libc::O_RDWR);
    // SAFETY: a zeroed flock is valid, and fcntl fills it in.
    let lock = unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        lock.l_type = libc::F_WRLCK as i16;
        libc::fcntl(fd, libc::F_GETLK, &raw mut lock);
        lock
    };
    let held = lock.l_type != libc::F_UNLCK as i16;
    println!("  lock seen from another program: {}", if held { "held" } else { "free" });
}

/// Truncates by path, from another program.
fn truncate(path: &str, length: i64) -> c_int {
    let Ok(path) = CString::new(path) else { return FAILED };
    // SAFETY: the path is NUL-terminated.
    if unsafe { libc::truncate(path.as_ptr(), length) } == 0 { 0 } else { FAILED }
}

/// Runs after a preloaded library's constructor wrote to `path`: writes on.
fn constructed(path: &str) -> c_int {
    let Ok(path) = CString::new(path) else { return FAILED };
    let fd = open_quietly(&path, libc::O_RDWR);
    if fd < 0 { FAILED } else { write_at(fd, "m", 2000) }
}
