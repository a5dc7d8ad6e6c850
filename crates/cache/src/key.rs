//! What a block is called, and where such names are spread to.

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

/// splitmix64's finaliser: each bit of the result depends on all.
fn mixed(mut x: u64) -> u64 {
    x ^= 0x9e37_79b9_7f4a_7c15;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
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
