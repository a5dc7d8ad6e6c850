//! Files that were synced once, and have no slot: the next sync of one asks for a slot, by whichever descriptor it comes.
//!
//! A few of the last ones, by what they are: an inode that is used again is another file. Two that meet at one place forget
//! each other, which costs a sync that waits for the disk.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::sys::{self, Stat};

const PLACES: usize = 256;
static SYNCED: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// True if the file behind `fd` was synced before, as far as this process knows.
pub fn is_known(fd: c_int, stat: &Stat) -> bool {
    let file = fingerprint([stat.dev, stat.ino, sys::born(fd)]);
    SYNCED[file as usize % PLACES].load(Relaxed) == file | 1 << 63
}

/// True if the file behind `fd` was synced before, as far as this process knows; from now on it was.
pub fn was_synced(fd: c_int, stat: &Stat) -> bool {
    let file = fingerprint([stat.dev, stat.ino, sys::born(fd)]);
    // Zero is a place that nobody had.
    SYNCED[file as usize % PLACES].swap(file | 1 << 63, Relaxed) == file | 1 << 63
}

fn fingerprint(words: [u64; 3]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    words.iter().fold(0, |sum: u64, word| (sum ^ word).wrapping_mul(ODD).rotate_left(29))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_differ_by_each_of_their_marks() {
        let one = fingerprint([1, 2, 3]);
        assert!([[2, 2, 3], [1, 3, 3], [1, 2, 4], [2, 1, 3]].iter().all(|other| fingerprint(*other) != one));
    }
}
