//! The decision table of recovery: one row for every kind of record.
//!
//! | row | LSN ≤ retired | slot used, same generation | LSN ≤ watermark | whole | fate | because |
//! |---|---|---|---|---|---|---|
//! | R1 | yes | – | – | – | dead | destage saw every file synced past it |
//! | R2 | no | no | – | – | dead | a slot is given up only after its file was retired or removed |
//! | R3 | no | yes | yes | – | dead | a real sync covered it |
//! | R4 | no | yes | no | no | torn | cut by the crash before its fence: never acknowledged |
//! | R5 | no | yes | no | yes | live | nothing but the log is known to hold it |
//!
//! A record of a *later* generation than its slot's is impossible: the slot's state is persisted before the file's
//! first record. It fails an assertion in tests, and counts as damage.

use crate::table::FileEntry;

/// The fate of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// R1: retired with the whole log.
    Retired,
    /// R2: its file is no longer managed.
    Forgotten,
    /// R3: retired with its file.
    OnDisk,
    /// R4: not all of its parts are there.
    Torn,
    /// R5: to be replayed.
    Live,
    /// Not possible: the slot has not reached this generation.
    Impossible,
}

/// Looks the row up.
pub fn fate(lsn: u64, generation: u32, whole: bool, retired: u64, file: Option<&FileEntry>) -> Fate {
    if lsn <= retired {
        return Fate::Retired;
    }
    match file {
        None => Fate::Forgotten,
        Some(f) if f.generation > generation => Fate::Forgotten,
        Some(f) if f.generation < generation => Fate::Impossible,
        Some(f) if lsn <= f.watermark => Fate::OnDisk,
        Some(_) if !whole => Fate::Torn,
        Some(_) => Fate::Live,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seawall_media::Identity;

    fn file(generation: u32, watermark: u64) -> FileEntry {
        let identity = Identity { fs: [0; 16], kind: 1, handle: vec![1] };
        FileEntry { slot: 0, generation, root: 0, identity, path: "f".into(), is_directory: false, watermark }
    }

    // Holds: P2
    #[test]
    fn every_row() {
        let f = file(3, 50);
        assert_eq!(fate(10, 3, true, 10, Some(&f)), Fate::Retired, "R1");
        assert_eq!(fate(11, 3, true, 10, None), Fate::Forgotten, "R2");
        assert_eq!(fate(90, 2, true, 10, Some(&f)), Fate::Forgotten, "R2");
        assert_eq!(fate(50, 3, true, 10, Some(&f)), Fate::OnDisk, "R3");
        assert_eq!(fate(51, 3, false, 10, Some(&f)), Fate::Torn, "R4");
        assert_eq!(fate(51, 3, true, 10, Some(&f)), Fate::Live, "R5");
        assert_eq!(fate(51, 4, true, 10, Some(&f)), Fate::Impossible);
    }
}
