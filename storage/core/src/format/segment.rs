//! A segment's header: which lane it belongs to, and what came before it in that lane.

use seawall_media::{LINE, Region, assert_layout, crc32c};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

const MAGIC: u32 = u32::from_le_bytes(*b"SWsg");

/// The first line of a segment. Stored with the first record in it, under the same fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SegmentHeader {
    magic: u32,
    /// The lane that filled it.
    pub lane: u32,
    /// Unique number of this use of the segment, from the pool's LSN sequence. Records carry it: leftovers of a former
    /// use are not believed.
    pub seq: u64,
    /// Low half of the pool's UUID: defeats a segment of another pool.
    pub pool: u64,
    /// The lane's segment before this one, as its `seq`; 0 for none.
    pub previous_seq: u64,
    /// Highest LSN in that segment: if it is not retired, the segment must be intact up to `previous_end`.
    pub previous_lsn: u64,
    /// Its number.
    pub previous: u32,
    /// Bytes of it that were fenced when this segment was opened: anything unreadable inside them is damage.
    pub previous_end: u32,
    reserved: u64,
    reserved_too: u32,
    checksum: u32,
}

assert_layout!(SegmentHeader, 64, {
    magic @ 0, lane @ 4, seq @ 8, pool @ 16, previous_seq @ 24, previous_lsn @ 32, previous @ 40,
    previous_end @ 44, reserved @ 48, reserved_too @ 56, checksum @ 60,
});

impl SegmentHeader {
    /// A header with no predecessor.
    pub fn new(lane: u32, seq: u64, pool: u64) -> Self {
        let mut h = Self::new_zeroed();
        (h.magic, h.lane, h.seq, h.pool) = (MAGIC, lane, seq, pool);
        h
    }

    /// Stores it at the segment's first line; persisted after the next fence.
    #[inline]
    pub fn store(mut self, region: &Region, at: usize) {
        self.checksum = self.sum();
        let mut line = [0; LINE];
        line.copy_from_slice(self.as_bytes());
        region.store_line(at, &line);
    }

    /// Reads the header at `at`, or `None` if no valid one of this pool is there.
    pub fn read(region: &Region, at: usize, pool: u64) -> Option<Self> {
        let mut h = Self::new_zeroed();
        region.read(at, h.as_mut_bytes());
        (h.magic == MAGIC && h.pool == pool && h.checksum == h.sum()).then_some(h)
    }

    fn sum(&self) -> u32 {
        crc32c(&self.as_bytes()[..LINE - 4])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a power cut each unit of eight bytes may belong to either use.
    #[test]
    fn a_header_of_two_uses_is_none() {
        let file = tempfile::tempfile_in("/dev/shm").expect("a file");
        file.set_len(4096).expect("room");
        let region = Region::map(&file, 4096, false).expect("a mapping");
        let former = SegmentHeader { previous_seq: 3, previous_lsn: 70, ..SegmentHeader::new(1, 9, 77) };
        let next = SegmentHeader { previous_seq: 9, previous_lsn: 90, ..SegmentHeader::new(2, 12, 77) };
        let lines = [former, next].map(|header| {
            header.store(&region, 0);
            let mut line = [0; LINE];
            region.read(0, &mut line);
            line
        });
        for mixed in 0..1_u32 << (LINE / 8) {
            let mut line = [0; LINE];
            for (unit, bytes) in line.chunks_exact_mut(8).enumerate() {
                bytes.copy_from_slice(&lines[(mixed >> unit & 1) as usize][unit * 8..][..8]);
            }
            region.copy_in(0, &line);
            let found = SegmentHeader::read(&region, 0, 77).map(|header| header.seq);
            let expected = if line == lines[0] { Some(9) } else { (line == lines[1]).then_some(12) };
            assert_eq!(found, expected, "{mixed:08b}");
        }
    }
}
