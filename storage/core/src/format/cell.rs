//! A persistent number that is updated in place: two checked copies, written one after the other.
//!
//! A crash during an update leaves one copy whole, so the cell always holds the old value or the new one. After an
//! update both copies hold the new value, so damage to one copy later does not bring the old value back. Values only
//! grow. Two damaged copies are damage, and are reported as such.

use seawall_media::{Region, fence, mix};

/// View of a cell: 32 bytes in one line.
#[derive(Clone, Copy)]
pub struct Cell {
    at: usize,
}

impl Cell {
    /// Bytes it occupies.
    pub const BYTES: usize = 32;

    /// The cell at `at`, which must be 32-byte aligned.
    pub const fn at(at: usize) -> Self {
        Self { at }
    }

    /// Where it lies.
    pub const fn range(self) -> (usize, usize) {
        (self.at, Self::BYTES)
    }

    /// Writes both copies. For cells that nothing refers to yet; persisted after the next fence.
    pub fn format(self, region: &Region, value: u64) {
        for copy in 0..2 {
            self.put(region, copy, value);
        }
    }

    /// The value, or `None` if both copies are damaged.
    pub fn load(self, region: &Region) -> Option<u64> {
        self.copy(region, 0).max(self.copy(region, 1))
    }

    /// Raises the value and waits until that is persisted. A lower value changes nothing. The caller holds whatever
    /// lock guards the cell.
    pub fn raise(self, region: &Region, value: u64) {
        let (a, b) = (self.copy(region, 0), self.copy(region, 1));
        // The last writer may have been killed before its fence: the visible value need not be persisted.
        region.flush(self.at, Self::BYTES);
        fence();
        let now = a.max(b).filter(|now| *now >= value);
        // … or between its two copies, and then the copy that lacks the value still has to be written.
        if now.is_some() && a == b {
            return;
        }
        let value = now.unwrap_or(value);
        let first = usize::from(a > b);
        self.put(region, first, value);
        fence();
        self.put(region, 1 - first, value);
        fence();
    }

    fn put(self, region: &Region, copy: usize, value: u64) {
        let at = self.at + copy * 16;
        region.set_u64(at, value);
        region.set_u64(at + 8, check(value, self.at));
    }

    fn copy(self, region: &Region, copy: usize) -> Option<u64> {
        let at = self.at + copy * 16;
        let mut bytes = [0; 16];
        region.read(at, &mut bytes);
        let word = |i: usize| u64::from_le_bytes(bytes[i..i + 8].try_into().unwrap_or_default());
        (check(word(0), self.at) == word(8)).then_some(word(0))
    }
}

/// Mixes in the position, so that a misdirected write does not look valid.
fn check(value: u64, at: usize) -> u64 {
    mix(value ^ (at as u64).rotate_left(40) ^ 0x5ea_7a11)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_damaged_copy_leaves_the_other_and_two_are_damage() {
        let file = tempfile::tempfile_in("/dev/shm").expect("a file");
        file.set_len(4096).expect("room");
        let region = Region::map(&file, 4096, false).expect("a mapping");
        let cell = Cell::at(64);
        assert_eq!(cell.load(&region), None, "zeros are not a cell");
        cell.format(&region, 5);
        cell.raise(&region, 9);
        cell.raise(&region, 7);
        assert_eq!(cell.load(&region), Some(9));
        cell.put(&region, 0, 12);
        region.set_u64(80, 1000);
        assert_eq!(cell.load(&region), Some(12));
        region.set_u64(64, 1000);
        assert_eq!(cell.load(&region), None);
    }

    #[test]
    fn who_raises_it_anew_ends_what_was_killed_between_the_copies() {
        let file = tempfile::tempfile_in("/dev/shm").expect("a file");
        file.set_len(4096).expect("room");
        let region = Region::map(&file, 4096, false).expect("a mapping");
        for (killed_in, value) in [(0, 9), (1, 9), (0, 7)] {
            let cell = Cell::at(64);
            cell.format(&region, 5);
            cell.put(&region, killed_in, 9);
            cell.raise(&region, value);
            region.set_u64(64 + killed_in * 16, 1000);
            assert_eq!(cell.load(&region), Some(9), "copy {killed_in}, then {value}");
        }
    }

    #[test]
    fn regression_a_damaged_copy_does_not_bring_an_older_value_back() {
        let file = tempfile::tempfile_in("/dev/shm").expect("a file");
        file.set_len(4096).expect("room");
        let region = Region::map(&file, 4096, false).expect("a mapping");
        let cell = Cell::at(64);
        for damaged in [64, 80] {
            cell.format(&region, 5);
            cell.raise(&region, 9);
            region.set_u64(damaged, 1000);
            assert_eq!(cell.load(&region), Some(9));
        }
    }
}
