//! Where everything lies in a pool.

use super::{SpillEntry, bytes_for};

/// Parts of a pool. Offsets come only from [`Layout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// Two copies of the superblock.
    Superblock,
    /// The cell of the retired LSN.
    Retired,
    /// Registered directories.
    Roots,
    /// Managed files and their watermarks.
    Files,
    /// The log.
    Segments,
    /// Which slots of the spill area hold which segments, in a pool that has one.
    Spilled,
}

/// How many registered directories a pool has room for.
pub const ROOTS: u32 = 16;
/// Bytes of one root entry.
pub const ROOT_ENTRY_BYTES: usize = 2048 + 128;
/// Bytes of one file entry.
pub const FILE_ENTRY_BYTES: usize = 512;

/// Most slots of a spill area: the daemon keeps 24 bytes for each in memory.
const MOST_SLOTS: u32 = 1 << 20;

const PAGE: usize = 4096;
const SUPERBLOCKS_AT: usize = 0;
const RETIRED_AT: usize = 2 * PAGE;
const ROOTS_AT: usize = 3 * PAGE;
const FILES_AT: usize = (ROOTS_AT + ROOTS as usize * ROOT_ENTRY_BYTES).next_multiple_of(PAGE);

/// Offsets that follow from a pool's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Entries of the file table.
    pub files: u32,
    /// Bytes of one segment: a power of two.
    pub segment_bytes: u32,
    /// Segments.
    pub segments: u32,
}

impl Layout {
    /// The smallest pool: 16 MiB.
    pub const MIN_SIZE: u64 = 16 << 20;

    /// Entries of the largest file table.
    pub const MOST_FILES: u32 = 4096;

    /// The largest pool: as large as a process's address space allows.
    pub const MAX_SIZE: u64 = 1 << 47;

    /// The layout of a pool of `size` bytes, or `None` if that is too small, or too large.
    pub fn for_size(size: u64) -> Option<Self> {
        if !(Self::MIN_SIZE..=Self::MAX_SIZE).contains(&size) {
            return None;
        }
        let files = (size >> 18).clamp(256, u64::from(Self::MOST_FILES)).next_power_of_two() as u32;
        let segment_bytes = 1u32 << (size >> 8).clamp(64 << 10, 4 << 20).ilog2();
        let mut layout = Self { files, segment_bytes, segments: 0 };
        let room = size.checked_sub(layout.segments_at() as u64)?;
        layout.segments = u32::try_from(room / u64::from(segment_bytes)).ok()?;
        Some(layout)
    }

    /// The same with room for what a spill area with this many slots needs, at the cost of a few segments. `None`: that
    /// would take more than a quarter of the log, or the slots are more than there may be.
    pub fn with_spill(self, slots: u32) -> Option<Self> {
        let taken = u32::try_from(bytes_for(slots).div_ceil(self.segment_bytes as usize)).ok()?;
        (taken <= self.segments / 4 && slots <= MOST_SLOTS)
            .then(|| Self { segments: self.segments - taken, ..self })
    }

    /// Slots of the largest spill area that a pool of this layout can have.
    pub fn most_slots(self) -> u32 {
        let bytes = u64::from(self.segments / 4) * u64::from(self.segment_bytes);
        let entries = bytes.saturating_sub(bytes_for(0) as u64) / SpillEntry::BYTES as u64;
        entries.min(u64::from(MOST_SLOTS)) as u32
    }

    /// Where the zone behind the segments begins.
    pub const fn spilled_at(&self) -> usize {
        self.segment(self.segments)
    }

    /// Bytes that the pool must have.
    pub fn end(&self) -> u64 {
        self.segments_at() as u64 + u64::from(self.segments) * u64::from(self.segment_bytes)
    }

    /// The copy `i` (0 or 1) of the superblock.
    pub const fn superblock(i: usize) -> usize {
        SUPERBLOCKS_AT + i * PAGE
    }

    /// The cell of the retired LSN: all records at or below it are on disk.
    pub const fn retired() -> usize {
        RETIRED_AT
    }

    /// Root entry `i`.
    pub const fn root(i: u32) -> usize {
        ROOTS_AT + i as usize * ROOT_ENTRY_BYTES
    }

    /// File entry `slot`.
    #[inline]
    pub const fn file(slot: u32) -> usize {
        FILES_AT + slot as usize * FILE_ENTRY_BYTES
    }

    /// Where the segments begin.
    #[inline]
    pub const fn segments_at(&self) -> usize {
        (FILES_AT + self.files as usize * FILE_ENTRY_BYTES).next_multiple_of(64 << 10)
    }

    /// Segment `i`.
    #[inline]
    pub const fn segment(&self, i: u32) -> usize {
        self.segments_at() + i as usize * self.segment_bytes as usize
    }

    /// The zone that an offset lies in.
    pub fn zone(&self, at: usize) -> Zone {
        match at {
            at if at < RETIRED_AT => Zone::Superblock,
            at if at < ROOTS_AT => Zone::Retired,
            at if at < FILES_AT => Zone::Roots,
            at if at < self.segments_at() => Zone::Files,
            at if at < self.spilled_at() => Zone::Segments,
            _ => Zone::Spilled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_of_every_size_have_room_for_a_log() {
        for shift in 24..44 {
            let size = 1u64 << shift;
            let layout = Layout::for_size(size).expect("a layout");
            assert!(layout.end() <= size);
            assert!(layout.segments >= 128, "{shift}: {layout:?}");
            let log = u64::from(layout.segments) * u64::from(layout.segment_bytes);
            assert!(log * 10 >= size * 9, "{shift}: the log is most of the pool");
        }
        assert_eq!(Layout::for_size(Layout::MIN_SIZE - 1), None);
        assert_eq!(Layout::for_size(Layout::MAX_SIZE + 1), None);
        assert!(Layout::for_size(20_000_000).is_some(), "a 20 MB tail of the log is enough");
    }

    #[test]
    fn the_largest_spill_area_fits_and_one_of_more_does_not() {
        for shift in 24..44 {
            let layout = Layout::for_size(1 << shift).expect("a layout");
            let most = layout.most_slots();
            let with = layout.with_spill(most).expect("room");
            assert!((with.spilled_at() + bytes_for(most)) as u64 <= layout.end(), "{shift}");
            assert!(with.segments >= layout.segments / 4 * 3, "{shift}");
            assert_eq!(layout.with_spill(most + 1), None, "{shift}");
        }
    }

    #[test]
    fn zones_do_not_overlap() {
        let layout = Layout::for_size(64 << 20).expect("a layout");
        assert_eq!(layout.zone(Layout::superblock(1)), Zone::Superblock);
        assert_eq!(layout.zone(Layout::retired()), Zone::Retired);
        assert_eq!(layout.zone(Layout::root(ROOTS - 1) + ROOT_ENTRY_BYTES - 1), Zone::Roots);
        assert_eq!(layout.zone(Layout::file(layout.files - 1) + FILE_ENTRY_BYTES - 1), Zone::Files);
        assert_eq!(layout.zone(layout.segment(0)), Zone::Segments);
        let layout = layout.with_spill(64).expect("room");
        assert_eq!(layout.zone(layout.spilled_at() - 1), Zone::Segments);
        assert_eq!(layout.zone(SpillEntry::of(layout, 63).range().0), Zone::Spilled);
    }
}
