//! Blocks of a cache that lie on a disk, read past the page cache by a descriptor that the daemon sends when a file is
//! entered.
//!
//! By a plain pread: a hit is one read, for which whoever reads has to wait in any case. An io_uring would add a system call to it,
//! and a mapping that every fork copies.

use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use seawall_cache::shared::FromDisk;
use seawall_core::Errno;

use crate::kept::BLOCKS;
use crate::sys::{self, unsafe_call};

/// What O_DIRECT wants memory aligned to, at most.
const ALIGNMENT: usize = 4096;
/// The largest block there is.
const LARGEST: usize = 16 << 10;

/// Aligned memory for reads into memory that is not.
#[repr(C, align(4096))]
struct Bounce {
    bytes: UnsafeCell<[u8; LARGEST]>,
    is_taken: AtomicBool,
}

// SAFETY: the bytes are touched only by the thread that has taken it.
unsafe impl Sync for Bounce {}

/// As many as threads are likely to read at once. Of one whose thread is gone (a fork's child has none of its parent's
/// others) nobody is in need: without a free one a block is not served.
static BOUNCES: [Bounce; 16] =
    [const { Bounce { bytes: UnsafeCell::new([0; LARGEST]), is_taken: AtomicBool::new(false) } }; 16];

/// Reads a block.
pub fn read(at: u64, into: &mut [u8]) -> FromDisk {
    // Its number may be another one by the second look: whatever was read is compared with a checksum.
    let Some(fd) = BLOCKS.get() else { return FromDisk::NotNow };
    if into.as_ptr().addr().is_multiple_of(ALIGNMENT) {
        return read_all(fd, at, into.as_mut_ptr(), into.len());
    }
    let take = |bounce: &&Bounce| bounce.is_taken.compare_exchange(false, true, Acquire, Relaxed).is_ok();
    let Some(bounce) = BOUNCES.iter().find(take).filter(|_| into.len() <= LARGEST) else {
        return FromDisk::NotNow;
    };
    let done = read_all(fd, at, bounce.bytes.get().cast(), into.len());
    if done == FromDisk::All {
        // SAFETY: taken above, so that nobody else stores to it; as long as `into` at least.
        into.copy_from_slice(unsafe { core::slice::from_raw_parts(bounce.bytes.get().cast(), into.len()) });
    }
    bounce.is_taken.store(false, Release);
    done
}

/// Reads `len` bytes into memory that is as long.
fn read_all(fd: c_int, at: u64, memory: *mut u8, len: usize) -> FromDisk {
    loop {
        if let Some(done) = FromDisk::of(unsafe_call!(SYS_pread64, fd, memory, len, at), len) {
            return done;
        }
    }
}

/// True if all of this stretch of a file is in the page cache: then that is quicker. By cachestat(2), Linux 6.5, which
/// begins no read as a read that does not wait would. Where that is not to be had: false.
pub fn is_in_memory(fd: c_int, from: u64, len: u64) -> bool {
    const PAGE: u64 = 4096;
    static IS_MISSING: AtomicBool = AtomicBool::new(false);
    if IS_MISSING.load(Relaxed) {
        return false;
    }
    match sys::cached_pages(fd, from, len) {
        Ok(pages) => pages * PAGE >= len,
        Err(Errno::NOSYS) => {
            IS_MISSING.store(true, Relaxed);
            false
        }
        Err(_) => false,
    }
}
