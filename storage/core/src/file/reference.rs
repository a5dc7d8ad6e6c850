//! Which file a slot belongs to, or belonged to.

/// A managed file, as a descriptor remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRef {
    /// Its slot.
    pub slot: u32,
    /// Generation of the slot at that time.
    pub generation: u32,
}

impl FileRef {
    /// Both in one word, never 0: generations begin at 1.
    #[inline]
    pub const fn word(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }

    /// What [`word`](Self::word) made.
    #[inline]
    pub const fn of_word(word: u64) -> Self {
        Self { slot: word as u32, generation: (word >> 32) as u32 }
    }
}
