//! A record's header: one line, then the payload, padded with zeros to whole lines.
//!
//! A record is valid if its header's checksum, its segment's sequence number and its payload's checksum all
//! say so: there is no separate commit mark, and one fence persists it.

use seawall_media::{LINE, Region, assert_layout, crc32c};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

const MAGIC: u32 = u32::from_le_bytes(*b"SWrc");

/// What a record does to its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// `stored` payload bytes at `offset`, then zeros up to `length`.
    Write = 1,
    /// The file's size becomes `offset`.
    Truncate = 2,
    /// The payload is a change of names in the directory ([`NameChange`](super::NameChange)).
    Names = 3,
}

/// Bits of [`RecordHeader::flags`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordFlags;

impl RecordFlags {
    /// The last part of its write: a write counts only with all parts from 0 to this one.
    pub const LAST: u8 = 1;
}

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RecordHeader {
    magic: u32,
    kind: u8,
    /// [`RecordFlags`].
    pub flags: u8,
    /// Number of the part: a write longer than the rest of a segment goes on in the next one.
    pub part: u16,
    /// Position in the pool's one sequence. Parts of one write share it.
    pub lsn: u64,
    /// [`SegmentHeader::seq`](super::SegmentHeader::seq) of the segment it was written in.
    pub segment_seq: u64,
    /// Offset in the file; the new size for a truncate.
    pub offset: u64,
    /// Bytes of the file it covers.
    pub length: u32,
    /// Payload bytes that follow; the rest up to `length` is zeros.
    pub stored: u32,
    /// Slot of the file.
    pub slot: u32,
    /// Generation of the slot.
    pub generation: u32,
    reserved: u64,
    /// Striped CRC-32C of the padded payload.
    pub payload: u32,
    checksum: u32,
}

assert_layout!(RecordHeader, 64, {
    magic @ 0, kind @ 4, flags @ 5, part @ 6, lsn @ 8, segment_seq @ 16, offset @ 24, length @ 32,
    stored @ 36, slot @ 40, generation @ 44, reserved @ 48, payload @ 56, checksum @ 60,
});

impl RecordHeader {
    /// A header of this kind; the caller fills the rest.
    #[inline]
    pub fn new(kind: RecordKind) -> Self {
        let mut h = Self::new_zeroed();
        (h.magic, h.kind) = (MAGIC, kind as u8);
        h
    }

    /// The record's kind, or `None` for a kind of a later version.
    pub fn kind(&self) -> Option<RecordKind> {
        match self.kind {
            1 => Some(RecordKind::Write),
            2 => Some(RecordKind::Truncate),
            3 => Some(RecordKind::Names),
            _ => None,
        }
    }

    /// Bytes the record occupies, header included.
    #[inline]
    pub fn extent(&self) -> usize {
        LINE + (self.stored as usize).next_multiple_of(LINE)
    }

    /// Stores the header; persisted after the next fence.
    #[inline]
    pub fn store(mut self, region: &Region, at: usize) {
        self.checksum = self.sum();
        let mut line = [0; LINE];
        line.copy_from_slice(self.as_bytes());
        region.store_line(at, &line);
    }

    /// Reads the header at `at`, or `None` if no valid one of this use of the segment is there.
    pub fn read(region: &Region, at: usize, segment_seq: u64) -> Option<Self> {
        let mut h = Self::new_zeroed();
        region.read(at, h.as_mut_bytes());
        let valid = h.magic == MAGIC && h.segment_seq == segment_seq && h.checksum == h.sum();
        (valid && h.stored <= h.length && h.kind().is_some()).then_some(h)
    }

    fn sum(&self) -> u32 {
        crc32c(&self.as_bytes()[..LINE - 4])
    }
}
