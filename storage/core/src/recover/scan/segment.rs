//! One segment: its records from the front, and what follows the last of them.
//!
//! For a segment whose records are all retired only the headers are read: whatever a retired record contains, it is
//! dead (R1), and nothing about it is reported. Most of a log that has been in use for long is like that.

use seawall_media::{LINE, Region, Striped};

use crate::format::{RecordHeader, SegmentHeader};

/// Where a part of a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Offset of its header in the pool; behind the pool's end, in the slots of the spill area.
    pub at: usize,
    /// The header.
    pub header: RecordHeader,
}

impl Found {
    /// True if both are parts of one record.
    pub(super) fn is_of_same(&self, other: &Self) -> bool {
        self.header.lsn == other.header.lsn
    }
}

/// One segment as it was found.
pub struct Segment {
    pub header: SegmentHeader,
    pub parts: Vec<Found>,
    /// Where the first invalid record begins.
    pub end: usize,
    /// Where a valid record follows behind that end, and its LSN.
    pub beyond: Option<(usize, u64)>,
}

/// A segment in memory.
pub struct Place<'a> {
    pub memory: &'a Region,
    pub base: usize,
    pub bytes: usize,
    /// Where it is in the log, as in [`Found::at`].
    pub at: usize,
}

/// The segment at this place, if there is one, for the pool with this half of its UUID.
pub fn read(place: &Place<'_>, uuid_low: u64, retired: u64) -> Option<Segment> {
    let header = SegmentHeader::read(place.memory, place.base, uuid_low)?;
    let mut payload = Vec::new();
    let mut is_live = false;
    let (mut parts, mut end) = parts(place, |at| {
        let header = read_header(place, at, header.seq)?;
        is_live |= header.lsn > retired;
        (!is_live).then_some(header)
    });
    if is_live {
        (parts, end) = self::parts(place, |at| read_part(place, at, header.seq, &mut payload));
    }
    let headers_beyond = (end + LINE..place.bytes).step_by(LINE);
    let beyond = headers_beyond
        .filter_map(|next| Some((next, read_part(place, next, header.seq, &mut payload)?.lsn)))
        .next_back();
    Some(Segment { header, parts, end, beyond })
}

/// The parts from the front on without a gap, and where they end.
fn parts(place: &Place<'_>, mut part: impl FnMut(usize) -> Option<RecordHeader>) -> (Vec<Found>, usize) {
    let (mut at, mut parts) = (LINE, Vec::new());
    while let Some(header) = part(at) {
        parts.push(Found { at: place.at + at, header });
        at += header.extent();
    }
    (parts, at)
}

/// A valid header of a record that fits there.
fn read_header(place: &Place<'_>, at: usize, seq: u64) -> Option<RecordHeader> {
    if at + LINE > place.bytes {
        return None;
    }
    RecordHeader::read(place.memory, place.base + at, seq)
        .filter(|header| at + header.extent() <= place.bytes)
}

/// The header of a part with a valid payload.
fn read_part(place: &Place<'_>, at: usize, seq: u64, payload: &mut Vec<u8>) -> Option<RecordHeader> {
    let header = read_header(place, at, seq)?;
    payload.resize(header.extent() - LINE, 0);
    place.memory.read(place.base + at + LINE, payload);
    is_summed(&header, payload).then_some(header)
}

/// True if these are the record's bytes, with their padding.
pub fn is_summed(header: &RecordHeader, padded: &[u8]) -> bool {
    let mut sum = Striped::new();
    sum.update(padded);
    sum.finish() == header.payload
}
