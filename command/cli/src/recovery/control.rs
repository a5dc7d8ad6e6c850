//! PostgreSQL's control file, as far as it tells a crash and where redo begins.
//!
//! Source: `src/include/catalog/pg_control.h`. The fields read here have stood at the same place since version 11.

use std::fs;
use std::path::Path;

const VERSIONS: std::ops::RangeInclusive<u32> = 1100..=1999;
const SHUT_DOWN: u32 = 1;

/// What is read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// The server was stopped in order.
    pub is_shut_down: bool,
    /// Where the replay of a crash recovery begins, a position in the WAL.
    pub redo: u64,
}

impl Control {
    /// Of this data directory; `None` if there is none, or it is of a version that is not known.
    pub fn of(data: &Path) -> Option<Self> {
        Self::parse(&fs::read(data.join("global/pg_control")).ok()?)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let position = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        VERSIONS.contains(&word(8)?).then_some(())?;
        Some(Self { is_shut_down: word(16)? == SHUT_DOWN, redo: position(40)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_and_the_place_of_redo_are_told() {
        let mut file = vec![0_u8; 8192];
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(8, &1300_u32.to_ne_bytes());
        put(16, &6_u32.to_ne_bytes());
        put(40, &0x5000_0028_u64.to_ne_bytes());
        assert_eq!(Control::parse(&file), Some(Control { is_shut_down: false, redo: 0x5000_0028 }));
        file[8] = 0;
        file[9] = 0;
        assert_eq!(Control::parse(&file), None, "no version that is known");
        assert_eq!(Control::parse(&file[..20]), None);
    }
}
