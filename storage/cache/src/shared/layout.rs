//! Where everything lies in a zone, and on the disk of one whose blocks lie there: it follows from five numbers.

use super::format::{CELL_BYTES, FileRecord, Header, OPERATION_BYTES, SAMPLE_BYTES};
use crate::set::WAYS;

/// The numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of a block: 4096, 8192 or 16384.
    pub block_bytes: u32,
    /// Sets of [`WAYS`] places.
    pub sets: u32,
    /// Files.
    pub files: u32,
    /// Fills, writes and changes that can be under way at once.
    pub operations: u32,
    /// Places for blocks on their way to a disk; 0: the blocks lie in the zone itself.
    pub staged: u32,
}

/// Bytes of a set's head: its word, heats, hand, and ghosts.
pub const HEAD_BYTES: usize = 32;
const WORDS_BYTES: usize = WAYS * 8;
/// What is known of a block on its way to a disk.
pub const STAGED_BYTES: usize = 64;

impl Layout {
    /// The layout for a zone of so many bytes; `None` for a size of blocks that is not allowed, and for less than
    /// 64 MiB or more than 16 TiB.
    ///
    /// Everything but the blocks themselves is at most 0.5 % of them.
    pub fn for_zone(bytes: u64, block_bytes: u32) -> Option<Self> {
        if !matches!(block_bytes, 4096 | 8192 | 16384) || !(64 << 20..=16 << 40).contains(&bytes) {
            return None;
        }
        let blocks = bytes / u64::from(block_bytes);
        let files = (blocks / 128).clamp(64, 1 << 16) as u32;
        let operations = (blocks / 512).clamp(64, 2048) as u32;
        let empty = Self { block_bytes, sets: 0, files, operations, staged: 0 };
        let per_set = (HEAD_BYTES + 2 * WORDS_BYTES + WAYS * block_bytes as usize) as u64;
        // The parts are aligned, which takes a page for each of the last four at most.
        let room = bytes.checked_sub(empty.blocks_at() as u64 + 4 * u64::from(block_bytes))?;
        let sets = u32::try_from(room / per_set).ok()?;
        Some(Self { sets, ..empty })
    }

    /// The layout for a cache of so many bytes on a disk, whose index is in memory; `None` as above. A zone in memory
    /// has besides the index up to 128 blocks on their way to the disk.
    pub fn for_disk(bytes: u64, block_bytes: u32) -> Option<Self> {
        let inside = Self::for_zone(bytes, block_bytes)?;
        let staged = (inside.blocks() / 512).clamp(16, 128) as u32;
        // What the store has before its index takes the place of a set at most.
        let sets = inside.sets.checked_sub(1).filter(|sets| *sets > 0)?;
        Some(Self { sets, staged, ..inside })
    }

    /// True if the blocks lie on a disk.
    #[inline]
    pub fn is_on_disk(self) -> bool {
        self.staged > 0
    }

    /// Where on the disk the saved index begins.
    pub const SAVED_AT: u64 = 4096;

    /// Where a place's block lies behind the index. Those of a set's first place come first, for all sets, then those of its
    /// second, and so on: a cache whose sets have fewer places is shorter, and nothing of it lies elsewhere.
    #[inline]
    fn behind_index(self, set: u32, way: usize) -> u64 {
        (way as u64 * u64::from(self.sets) + u64::from(set)) * u64::from(self.block_bytes)
    }

    /// Where a place's block lies, in a zone that has blocks.
    #[inline]
    pub(super) fn block_at(self, set: u32, way: usize) -> usize {
        self.blocks_at() + self.behind_index(set, way) as usize
    }

    /// Where on the disk a place's block lies: behind the saved index.
    #[inline]
    pub(super) fn stored_at(self, set: u32, way: usize) -> u64 {
        Self::SAVED_AT + self.blocks_at() as u64 + self.behind_index(set, way)
    }

    /// Bytes on the disk.
    pub fn stored_bytes(self) -> u64 {
        self.bytes_of(WAYS as u32)
    }

    /// Bytes of the cache if its sets have only so many places: where its blocks end, in the zone or on the disk.
    pub fn bytes_of(self, ways: u32) -> u64 {
        let before = if self.is_on_disk() { Self::SAVED_AT } else { 0 };
        before + self.blocks_at() as u64 + self.behind_index(0, ways as usize)
    }

    /// Where what is known of a block on its way to the disk lies.
    pub(super) fn staged_at(self, number: u32) -> usize {
        self.blocks_at() + number as usize * STAGED_BYTES
    }

    /// Where such a block lies.
    pub(super) fn staged_block_at(self, number: u32) -> usize {
        let heads = (self.staged as usize * STAGED_BYTES).next_multiple_of(4096);
        self.blocks_at() + heads + number as usize * self.block_bytes as usize
    }

    /// Places for blocks.
    pub fn blocks(self) -> u64 {
        u64::from(self.sets) * WAYS as u64
    }

    pub(super) fn samples_at(self) -> usize {
        Header::BYTES
    }

    /// Cells, several for each file: one that is pinned is in the way of few others.
    pub(super) fn cells(self) -> u32 {
        (self.files * 8).min(1 << 16)
    }

    pub(super) fn cells_at(self) -> usize {
        self.samples_at() + SAMPLE_BYTES
    }

    pub(super) fn operations_at(self) -> usize {
        (self.cells_at() + self.cells() as usize * CELL_BYTES).next_multiple_of(OPERATION_BYTES)
    }

    pub(super) fn files_at(self) -> usize {
        self.operations_at() + self.operations as usize * OPERATION_BYTES
    }

    pub(super) fn heads_at(self) -> usize {
        (self.files_at() + self.files as usize * FileRecord::BYTES).next_multiple_of(4096)
    }

    pub(super) fn keys_at(self) -> usize {
        (self.heads_at() + self.sets as usize * HEAD_BYTES).next_multiple_of(128)
    }

    pub(super) fn tags_at(self) -> usize {
        self.keys_at() + self.sets as usize * WORDS_BYTES
    }

    pub(super) fn blocks_at(self) -> usize {
        (self.tags_at() + self.sets as usize * WORDS_BYTES).next_multiple_of(4096)
    }

    /// Bytes of everything but the blocks.
    pub fn index_bytes(self) -> usize {
        self.blocks_at()
    }

    /// Bytes of everything in memory; `None` for numbers that no zone has.
    pub fn total_bytes(self) -> Option<usize> {
        let is_sane = matches!(self.block_bytes, 4096 | 8192 | 16384)
            && (1..=1 << 28).contains(&self.sets)
            && (1..=1 << 16).contains(&self.files)
            && (1..=1 << 12).contains(&self.operations)
            && self.staged <= 1 << 12;
        is_sane.then(|| match self.is_on_disk() {
            true => self.staged_block_at(self.staged),
            false => self.blocks_at() + self.sets as usize * WAYS * self.block_bytes as usize,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_takes_half_a_percent_at_most_and_all_fits() {
        for shift in 26..=44 {
            for block_bytes in [4096, 8192, 16384] {
                for zone in [1 << shift, (1 << shift) + 123_456 * (shift as u64 - 26)] {
                    let Some(layout) = Layout::for_zone(zone, block_bytes) else {
                        assert!(zone > 16 << 40);
                        continue;
                    };
                    let total = layout.total_bytes().expect("a layout of ours is sane") as u64;
                    assert!(total <= zone, "{zone}: {layout:?}");
                    assert!(total + (1 << 19) > zone, "{zone}: {} are left over", zone - total);
                    let blocks = layout.blocks() * u64::from(block_bytes);
                    assert!(layout.index_bytes() as u64 * 200 <= blocks, "{zone}: {layout:?}");
                    let disk = Layout::for_disk(zone, block_bytes).expect("as large");
                    assert!(disk.stored_bytes() <= zone && disk.blocks() + 16 >= layout.blocks(), "{disk:?}");
                    let staging = disk.total_bytes().expect("sane") - disk.index_bytes();
                    assert!(staging <= 3 << 20, "{disk:?}");
                }
            }
        }
        assert_eq!(Layout::for_zone(1 << 30, 512), None);
        assert_eq!(Layout::for_zone(1 << 25, 8192), None);
    }
}
