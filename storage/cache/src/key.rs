//! What a block is called, and where such names are spread to.

use seawall_media::mix;

/// A block of a file. A file's blocks are all of one size, the cache's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block {
    /// The file's number in the cache.
    pub file: u32,
    /// Its number in the file: offset divided by the size of a block.
    pub number: u32,
}

impl Block {
    /// Both numbers mixed into 64 bits.
    #[inline]
    pub fn hash(self) -> u64 {
        mixed(u64::from(self.file) << 32 | u64::from(self.number))
    }

    /// Which of `sets` sets it belongs to. It is in that one or in none.
    #[inline]
    pub fn set(self, sets: u32) -> u32 {
        (((self.hash() >> 32) * u64::from(sets)) >> 32) as u32
    }

    /// What a set remembers of a block it does not hold.
    #[inline]
    pub fn fingerprint(self) -> u8 {
        fingerprint(self.number)
    }
}

/// What a set remembers of a block with this number, of whatever file: never 0. Independent of
/// [`set`](Block::set).
#[inline]
pub fn fingerprint(number: u32) -> u8 {
    (mixed(u64::from(number)) as u8).max(1)
}

/// Mixed also where all bits are zeros, which [`mix`] leaves as they are.
fn mixed(x: u64) -> u64 {
    mix(x ^ 0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_spread_over_all_sets() {
        let mut counts = [0; 64];
        for number in 0..6400 {
            counts[Block { file: 3, number }.set(64) as usize] += 1;
        }
        assert!(counts.iter().all(|n| (50..160).contains(n)), "{counts:?}");
    }

    #[test]
    fn a_fingerprint_is_never_the_empty_one() {
        assert!((0..10_000).all(|number| Block { file: 1, number }.fingerprint() != 0));
    }
}
