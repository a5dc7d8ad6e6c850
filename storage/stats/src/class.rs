//! What a database uses a file for: waits are counted apart for each.

/// A class of files. Zero, as in memory that was never written, is [`Class::Other`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Class {
    /// None of those below.
    #[default]
    Other = 0,
    /// What a commit waits for: WAL, redo log, rollback journal, append-only file.
    Log = 1,
    /// MariaDB's binary log.
    BinaryLog = 2,
    /// Tables and indexes.
    Data = 3,
}

impl Class {
    /// All of them, by number.
    pub const ALL: [Self; 4] = [Self::Other, Self::Log, Self::BinaryLog, Self::Data];

    /// The class of a word of shared memory, whatever is in it: no word leads outside the table.
    #[inline]
    pub const fn from_word(word: u32) -> Self {
        Self::ALL[(word & 3) as usize]
    }

    /// The name that reports show, after AWR's file types.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Other => "other file",
            Self::Log => "log file",
            Self::BinaryLog => "binary log",
            Self::Data => "data file",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_a_class() {
        for (i, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!((class as usize, Class::from_word(i as u32)), (i, class));
        }
        assert_eq!(Class::from_word(u32::MAX), Class::Data);
    }
}
