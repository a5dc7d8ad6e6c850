//! Files that were synced once, and have no slot: the next sync of one asks for a slot, by whichever descriptor it comes.
//!
//! A few of the last ones, by what they are: an inode that is used again is another file. Two that meet at one place forget
//! each other, which costs a sync that waits for the disk.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::sys::{self, Stat};

const PLACES: usize = 256;
static SYNCED: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// What tells one file from another.
pub struct Mark(u64);

impl Mark {
    /// Of the file behind `fd`.
    pub fn of(fd: c_int, stat: &Stat) -> Self {
        // Zero is a place that nobody had.
        Self(fingerprint([stat.dev, stat.ino, sys::born(fd)]) | 1 << 63)
    }

    /// True if the file was synced before, as far as this process knows.
    pub fn was_synced(&self) -> bool {
        self.place().load(Relaxed) == self.0
    }

    /// From now on the file was synced. True if it was before, as far as this process knows.
    pub fn set(&self) -> bool {
        self.place().swap(self.0, Relaxed) == self.0
    }

    fn place(&self) -> &'static AtomicU64 {
        &SYNCED[self.0 as usize % PLACES]
    }
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
