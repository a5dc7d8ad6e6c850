//! How much of a file the page cache holds.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::ptr;

use rustix::param::page_size;

/// The number of cachestat(2), the same on every architecture: Linux 6.5 has it.
const CACHESTAT: libc::c_long = 451;

/// Bytes of `len` from `offset` on that the page cache holds, in whole pages. Both are multiples of the page's size.
/// Changes nothing, and brings nothing in.
///
/// # Errors
/// Of the kernel; a file of others that may not be written tells nothing.
pub fn resident(file: &File, offset: u64, len: u64) -> io::Result<u64> {
    match by_cachestat(file, offset, len) {
        Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => by_mincore(file, offset, len),
        told => told,
    }
}

fn by_cachestat(file: &File, offset: u64, len: u64) -> io::Result<u64> {
    let range = [offset, len];
    // Pages in the cache, dirty, being written, evicted, evicted lately.
    let mut told = [0u64; 5];
    // SAFETY: two structures of the sizes that cachestat(2) reads and writes, and they live through the call.
    let failed = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), range.as_ptr(), told.as_mut_ptr(), 0) };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(told[0] * page_size() as u64)
}

/// Before Linux 6.5: the file is mapped, which touches none of its pages.
fn by_mincore(file: &File, offset: u64, len: u64) -> io::Result<u64> {
    let pages = (len as usize).div_ceil(page_size());
    let mut told: Vec<MaybeUninit<u8>> = vec![MaybeUninit::new(0); pages];
    // SAFETY: a mapping of our own at a place that the kernel chooses; nothing is read through it, and it ends below.
    unsafe {
        let (fd, shared) = (file.as_raw_fd(), libc::MAP_SHARED);
        let at =
            libc::mmap(ptr::null_mut(), len as usize, libc::PROT_READ, shared, fd, offset as libc::off_t);
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let failed = libc::mincore(at, len as usize, told.as_mut_ptr().cast());
        let error = io::Error::last_os_error();
        libc::munmap(at, len as usize);
        if failed != 0 {
            return Err(error);
        }
        Ok(told.iter().filter(|byte| byte.assume_init() & 1 != 0).count() as u64 * page_size() as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn what_was_written_is_there_and_what_was_dropped_is_not() {
        const LEN: u64 = 64 << 12;
        // Not in memory alone, or nothing can be dropped.
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        file.write_all(&[7; LEN as usize]).expect("written");
        file.sync_all().expect("on the disk");
        let all = |file: &File| {
            let ways = [resident(file, 0, LEN), by_mincore(file, 0, LEN)];
            ways.map(|told| told.expect("the kernel tells"))
        };
        assert_eq!(all(&file), [LEN; 2]);
        let dropped = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        dropped.expect("advised");
        if resident(&file, 0, LEN).expect("told") == LEN {
            return eprintln!("skipped: this file system is memory");
        }
        assert_eq!(all(&file), [0; 2]);
        let mut byte = [0];
        file.read_exact_at(&mut byte, 0).expect("read");
        assert!(all(&file).iter().all(|told| *told > 0 && *told < LEN), "{:?}", all(&file));
    }
}
