//! What this process may write at times that nobody sees: by requests that were submitted (libaio, io_uring, POSIX aio),
//! by io_urings that cannot be looked into.
//!
//! State alone: [`asynchronous`](crate::asynchronous) and [`io_uring`](crate::io_uring) note, and
//! [`classify`](crate::classify) asks.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst, fence};

use crate::sys::Stat;

/// This process may write any of its files unseen.
static ANY_FILE: AtomicBool = AtomicBool::new(false);
/// Files noted, by a hash of device and inode. Two files on one bit: the other is held for nothing, which is
/// safe. A bit is never cleared. Untouched pages of it cost no memory.
static NOTED: [AtomicU64; BITS / 64] = [const { AtomicU64::new(0) }; BITS / 64];
const BITS: usize = 1 << 19;
/// How many bits are set: none in most processes.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// True once this process may write any of its files unseen.
#[inline]
pub fn may_be_any() -> bool {
    ANY_FILE.load(SeqCst)
}

/// From now on it may. True if it might before.
pub fn note_all() -> bool {
    ANY_FILE.swap(true, SeqCst)
}

/// Notes a file that is about to be written unseen.
pub fn note(stat: &Stat) {
    let (word, bit) = place(stat);
    if word.fetch_or(bit, SeqCst) & bit == 0 {
        COUNT.fetch_add(1, SeqCst);
    }
    // Here the note, then the question whether the file is managed; in `classify` the file is managed, then the
    // question whether it is noted. One of the two sees the other.
    fence(SeqCst);
}

/// True if the file may have been written by a request of this process while it was not managed.
pub fn is_noted(stat: &Stat) -> bool {
    fence(SeqCst);
    if COUNT.load(Relaxed) == 0 {
        return false;
    }
    let (word, bit) = place(stat);
    word.load(Relaxed) & bit != 0
}

/// A file's bit.
fn place(stat: &Stat) -> (&'static AtomicU64, u64) {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let hash = (stat.ino ^ stat.dev.rotate_left(32)).wrapping_mul(GOLDEN);
    let at = (hash >> 32) as usize % BITS;
    (&NOTED[at / 64], 1 << (at % 64))
}
