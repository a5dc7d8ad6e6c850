//! What is remembered of an open file, in one word.

use crate::shared::{CachedFile, Cell, Version};

/// A word; zero says nothing.
///
/// ```text
///           63      48 47       24 23    8 7     2 1   0
/// plain    |  pause   |  version  |  cell | marks | 1   |
/// entered  |  tenant  |  slot     |       | marks | 2   |
/// other    |                                      | 3   |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(u64);

/// Marks.
pub mod mark {
    /// Open for writing.
    pub const WRITES: u64 = 1 << 2;
    /// Open for reading.
    pub const READS: u64 = 1 << 3;
    /// O_DIRECT.
    pub const DIRECT: u64 = 1 << 4;
    /// It is not to be served, by the daemon's word.
    pub const NEVER: u64 = 1 << 5;
    /// Its cell is pinned.
    pub const PINNED: u64 = 1 << 6;
    /// By the daemon's word it is the file in this slot; else one that was found by device and inode.
    pub const SURE: u64 = 1 << 7;
    pub(super) const ALL: u64 = 0xfc;
}

/// What a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Is {
    /// Nothing.
    Unknown,
    /// A regular file that was not entered when its cell had this version.
    Plain(Cell, Version),
    /// A file in a slot of the cache.
    Entered(CachedFile),
    /// No regular file, or nothing can be done with it.
    Other,
}

/// Whether a file is read through the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// It is.
    Through(CachedFile),
    /// Not this time.
    Not,
    /// Not this time either, and a pause has become shorter by it.
    Pauses(Word),
    /// The daemon is to be asked.
    Ask,
}

/// What the daemon answered to the question whether a file is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is.
    File(CachedFile),
    /// It is not to be.
    Never,
    /// It cannot be now.
    NotNow,
}

/// How many reads of an open file pass after it was refused.
const PAUSE: u16 = 1000;

impl Word {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self(0);
    /// No business of the cache's.
    pub const OTHER: Self = Self(3);

    /// As it was kept.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// To keep it.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// A regular file that is in no slot, as far as is known.
    pub const fn plain(cell: Cell, version: Version, marks: u64) -> Self {
        Self(1 | marks & mark::ALL | (cell.number() as u64) << 8 | (version.number() as u64) << 24)
    }

    /// The same descriptor, its file in a slot. Slots have 24 bits at most, as there are 65,536.
    pub const fn entered(self, file: CachedFile, marks: u64) -> Self {
        let name = (file.slot as u64 & 0xff_ffff) << 24 | (file.tenant as u64) << 48;
        Self(2 | (self.0 | marks) & mark::ALL | name)
    }

    /// The same with its cell looked at again.
    pub const fn seen(self, version: Version) -> Self {
        Self(self.0 & !(0xff_ffff << 24) | (version.number() as u64) << 24)
    }

    /// What it says.
    #[inline]
    pub const fn is(self) -> Is {
        match self.0 & 3 {
            0 => Is::Unknown,
            1 => Is::Plain(
                Cell::from_number((self.0 >> 8) as u16),
                Version::from_number((self.0 >> 24) as u32),
            ),
            2 => Is::Entered(CachedFile {
                slot: (self.0 >> 24) as u32 & 0xff_ffff,
                tenant: (self.0 >> 48) as u16,
            }),
            _ => Is::Other,
        }
    }

    /// True for [`OTHER`](Self::OTHER).
    #[inline]
    pub const fn is_other(self) -> bool {
        self.0 & 3 == 3
    }

    /// True if it has all these marks.
    #[inline]
    pub const fn has(self, marks: u64) -> bool {
        self.0 & marks == marks
    }

    /// The same with these marks.
    pub const fn with(self, marks: u64) -> Self {
        Self(self.0 | marks & mark::ALL)
    }

    const fn pause(self) -> u16 {
        (self.0 >> 48) as u16
    }

    const fn with_pause(self, pause: u16) -> Self {
        Self(self.0 & !(0xffff << 48) | (pause as u64) << 48)
    }

    /// What a read of the file is to do.
    #[inline]
    pub const fn reads(self) -> Reads {
        match self.is() {
            Is::Entered(file) if self.has(mark::READS | mark::SURE) => Reads::Through(file),
            Is::Unknown | Is::Other => Reads::Not,
            Is::Plain(..) if self.pause() > 0 => Reads::Pauses(self.with_pause(self.pause() - 1)),
            Is::Entered(_) | Is::Plain(..) if self.has(mark::NEVER) || !self.has(mark::READS) => Reads::Not,
            Is::Entered(_) | Is::Plain(..) => Reads::Ask,
        }
    }

    /// The daemon has answered.
    pub const fn answered(self, answer: Answer) -> Self {
        match (answer, self.is()) {
            (Answer::File(file), _) => self.entered(file, mark::SURE),
            (Answer::NotNow, Is::Plain(..)) => self.with_pause(PAUSE),
            // There is no room for a pause: the next opening asks anew.
            (Answer::Never | Answer::NotNow, _) => self.with(mark::NEVER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_was_put_into_it() {
        let (cell, version) = (Cell::from_number(0xfedc), Version::from_number(0xab_cdef));
        let plain = Word::plain(cell, version, mark::READS | mark::WRITES);
        assert_eq!(plain.is(), Is::Plain(cell, version));
        let later = Version::from_number(7);
        assert_eq!(plain.seen(later).is(), Is::Plain(cell, later));
        let file = CachedFile { slot: 65_535, tenant: 0xffff };
        let entered = plain.entered(file, 0);
        assert_eq!((entered.is(), entered.reads()), (Is::Entered(file), Reads::Ask), "found is not told");
        assert_eq!(entered.answered(Answer::File(file)).reads(), Reads::Through(file));
        assert!(entered.has(mark::READS | mark::WRITES) && !entered.has(mark::DIRECT));
    }

    #[test]
    fn who_was_refused_asks_again_after_a_pause_and_who_is_unwanted_never() {
        let plain = Word::plain(Cell::from_number(1), Version::default(), mark::READS);
        assert_eq!(plain.reads(), Reads::Ask);
        let mut word = plain.answered(Answer::NotNow);
        for _ in 0..PAUSE {
            let Reads::Pauses(next) = word.reads() else { panic!("{word:?}") };
            word = next;
        }
        assert_eq!(word.reads(), Reads::Ask);
        assert_eq!(plain.answered(Answer::Never).reads(), Reads::Not);
        assert_eq!(Word::OTHER.reads(), Reads::Not);
    }
}
