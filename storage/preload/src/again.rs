//! Files that were synced once, and have no slot: the next sync of one asks for a slot, by whichever descriptor it comes.
//!
//! A few of the last ones, by what they are: an inode that is used again is another file. Two that meet at one place forget
//! each other, which costs a sync that waits for the disk.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::sys::{self, Stat};

static SYNCED: Few = Few::new();

/// A few of the last files that were put here. Two that meet at one place forget each other.
pub struct Few([AtomicU64; Self::PLACES]);

impl Few {
    const PLACES: usize = 256;

    /// None were.
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; Self::PLACES])
    }

    /// True if the file with this [fingerprint] was put here.
    pub fn has(&self, file: u64) -> bool {
        self.place(file).load(Relaxed) == file
    }

    /// Puts it here. True if it was before.
    pub fn put(&self, file: u64) -> bool {
        self.place(file).swap(file, Relaxed) == file
    }

    fn place(&self, file: u64) -> &AtomicU64 {
        &self.0[file as usize % Self::PLACES]
    }
}

/// What tells one file from another.
pub struct Mark(u64);

impl Mark {
    /// Of the file behind `fd`.
    pub fn of(fd: c_int, stat: &Stat) -> Self {
        Self(fingerprint([stat.dev, stat.ino, sys::born(fd)]))
    }

    /// True if the file was synced before, as far as this process knows.
    pub fn was_synced(&self) -> bool {
        SYNCED.has(self.0)
    }

    /// From now on the file was synced. True if it was before, as far as this process knows.
    pub fn set(&self) -> bool {
        SYNCED.put(self.0)
    }
}

/// What tells one file from another, mixed. Never zero, which is a place that nobody had.
pub fn fingerprint(words: [u64; 3]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    words.iter().fold(0, |sum: u64, word| (sum ^ word).wrapping_mul(ODD).rotate_left(29)) | 1 << 63
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
