//! Scan: reads every segment and every record, and finds what contradicts itself.
//!
//! A segment is read from the front until the first invalid record. That is the end of the log there,
//! unless something says that more had been fenced: a valid record further on, or the claim of the lane's
//! next segment. Then a record that may have been acknowledged is unreadable, and that is damage.

mod live;
mod segment;
mod spilled;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use seawall_media::{LINE, in_parallel, processors};

use super::fate::{Fate, fate};
use crate::format::{FOREVER, RecordFlags, RecordKind, SegmentHeader};
use crate::pool::Pool;
use crate::table::FileEntry;
pub use live::Live;
pub use segment::Found;
use segment::{Place, Segment, is_summed};

/// A contradiction in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A record that was fenced is unreadable: valid bytes follow it.
    Record {
        /// The segment; behind the pool's last one, the slots of the spill area count on.
        segment: u32,
        /// Offset of the unreadable record in the segment.
        offset: u32,
        /// Offset up to which the segment is known to have been fenced.
        fenced: u32,
    },
    /// A record names a file generation that does not exist yet.
    Generation {
        /// The record's LSN.
        lsn: u64,
        /// The file slot.
        slot: u32,
    },
    /// A record reaches beyond what a file can hold.
    Range {
        /// The record's LSN.
        lsn: u64,
        /// The file slot.
        slot: u32,
    },
    /// The parts of one record belong to different files or kinds, or one part is there twice.
    Parts {
        /// The record's LSN.
        lsn: u64,
    },
    /// A number that no log has ever reached: behind it there would be none left to draw.
    Sequence {
        /// The highest number of the LSN sequence seen anywhere.
        lsn: u64,
    },
    /// The cell of the retired LSN is unreadable.
    Retired,
    /// A slot of the spill area does not hold what it should, or nobody knows what that would be.
    Slot {
        /// The slot.
        slot: u32,
    },
    /// The spill area cannot be read, and segments are in it.
    Area {
        /// How many.
        segments: u32,
    },
}

/// No log reaches this LSN: at one record each nanosecond it would take 146 years.
const LSN_MAX: u64 = 1 << 62;

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Record { segment, offset, fenced } => write!(
                f,
                "segment {segment}: the record at offset {offset} is unreadable, though the segment was \
                 written to offset {fenced}"
            ),
            Self::Generation { lsn, slot } => {
                write!(f, "record {lsn} names file slot {slot} in a generation that does not exist")
            }
            Self::Range { lsn, slot } => {
                write!(f, "record {lsn} would write to file slot {slot} beyond the largest possible file")
            }
            Self::Parts { lsn } => write!(f, "the parts of record {lsn} do not belong together"),
            Self::Sequence { lsn } => write!(f, "the record number {lsn} is higher than any log can reach"),
            Self::Retired => write!(f, "the retired LSN is unreadable"),
            Self::Slot { slot } => {
                write!(f, "slot {slot} of the spill area does not hold the segment that was copied to it")
            }
            Self::Area { segments } => {
                write!(f, "{segments} segments of the log are in the spill area, which cannot be read")
            }
        }
    }
}

/// What the log holds.
#[derive(Debug, Default)]
pub struct Scan {
    /// Live records.
    pub live: Live,
    /// Contradictions.
    pub damage: Vec<Damage>,
    /// Records found, live or not.
    pub records: u64,
    /// Live records that are not whole.
    pub torn: u64,
    /// The highest number of the LSN sequence seen anywhere.
    pub last_lsn: u64,
}

/// Reads the whole log. Writes nothing.
pub fn scan(pool: &Pool, files: &BTreeMap<u32, FileEntry>) -> Scan {
    let mut out = Scan::default();
    let Some(retired) = pool.retired().load(&pool.region) else {
        out.damage.push(Damage::Retired);
        return out;
    };
    let spilled = spilled::segments(pool, retired, &mut out.damage);
    let segments = in_pool(pool, spilled, retired);
    let watermarks = files.values().map(|f| f.watermark).filter(|lsn| *lsn < FOREVER);
    out.last_lsn = watermarks.fold(retired, u64::max);
    out.damage.extend(segments.iter().filter_map(|(i, s)| beyond(*i, s, retired)));
    let by_seq: BTreeMap<u64, &Segment> = segments.values().map(|s| (s.header.seq, s)).collect();
    let before = |claim: &SegmentHeader| {
        let there = segments.get(&claim.previous).filter(|s| s.header.seq == claim.previous_seq);
        there.or_else(|| by_seq.get(&claim.previous_seq).copied())
    };
    out.damage.extend(segments.values().filter_map(|s| claimed(s, before(&s.header), retired)));
    judge(&segments, files, retired, &mut out);
    if out.last_lsn > LSN_MAX {
        out.damage.push(Damage::Sequence { lsn: out.last_lsn });
    }
    out
}

/// The pool's segments, and these of the spill area. For a segment that is in both, the area's copy counts: the pool's
/// is free, and may be half overwritten.
fn in_pool(pool: &Pool, spilled: BTreeMap<u32, Segment>, retired: u64) -> BTreeMap<u32, Segment> {
    let layout = pool.layout();
    let moved: BTreeSet<u64> = spilled.values().map(|s| s.header.seq).collect();
    let place = |i| Place {
        memory: &pool.region,
        base: layout.segment(i),
        bytes: layout.segment_bytes as usize,
        at: layout.segment(i),
    };
    let uuid_low = pool.superblock.uuid_low();
    let read = |_: &mut (), i: usize| Some((i as u32, segment::read(&place(i as u32), uuid_low, retired)?));
    let found = in_parallel((processors(), pool.backed() as usize), || (), read).into_iter().flatten();
    let mut segments: BTreeMap<u32, Segment> =
        found.filter(|(_, s)| !moved.contains(&s.header.seq)).collect();
    segments.extend(spilled.into_iter().map(|(slot, s)| (layout.segments + slot, s)));
    segments
}

/// A part's payload without its padding.
///
/// # Errors
/// It cannot be read any more, or its checksum does not match any more.
pub(super) fn payload(pool: &Pool, part: &Found) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; part.header.extent() - LINE];
    pool.read_log(part.at + LINE, &mut bytes)?;
    let valid = is_summed(&part.header, &bytes);
    bytes.truncate(part.header.stored as usize);
    if valid { Ok(bytes) } else { Err(io::Error::other("the record changed while it was read")) }
}

/// Finds a valid record behind an invalid one: the lane had fenced the invalid one before it wrote the next. If the
/// later record is retired, so is the earlier, and the segment may be half overwritten by now.
fn beyond(index: u32, s: &Segment, retired: u64) -> Option<Damage> {
    let (fenced, lsn) = s.beyond?;
    (lsn > retired).then_some(Damage::Record { segment: index, offset: s.end as u32, fenced: fenced as u32 })
}

/// Checks the next segment's claim about the one before it. While the earlier one is not retired it is not free either,
/// so it must be there, in the named use, and intact up to where it had been fenced.
fn claimed(next: &Segment, before: Option<&Segment>, retired: u64) -> Option<Damage> {
    let claim = &next.header;
    if claim.previous_seq == 0 || claim.previous_end == 0 || claim.previous_lsn <= retired {
        return None;
    }
    let end = before.map_or(0, |before| before.end);
    (end < claim.previous_end as usize).then_some(Damage::Record {
        segment: claim.previous,
        offset: end as u32,
        fenced: claim.previous_end,
    })
}

/// Puts the parts together and gives every record its fate.
fn judge(segments: &BTreeMap<u32, Segment>, files: &BTreeMap<u32, FileEntry>, retired: u64, out: &mut Scan) {
    let mut all = Vec::with_capacity(segments.values().map(|segment| segment.parts.len()).sum());
    for segment in segments.values() {
        out.last_lsn = out.last_lsn.max(segment.header.seq);
        all.extend_from_slice(&segment.parts);
    }
    // Most are in order already, segment by segment.
    all.sort_by_key(|part| (part.header.lsn, part.header.part));
    for parts in all.chunk_by(Found::is_of_same) {
        let (first, lsn) = (parts[0].header, parts[0].header.lsn);
        out.records += 1;
        out.last_lsn = out.last_lsn.max(lsn);
        match fate(lsn, first.generation, is_whole(parts), retired, files.get(&first.slot)) {
            Fate::Live | Fate::Torn if !belong_together(parts) => out.damage.push(Damage::Parts { lsn }),
            Fate::Live if !parts.iter().all(is_in_range) => {
                out.damage.push(Damage::Range { lsn, slot: first.slot });
            }
            Fate::Live => out.live.push(parts),
            Fate::Torn => out.torn += 1,
            Fate::Impossible => out.damage.push(Damage::Generation { lsn, slot: first.slot }),
            Fate::Retired | Fate::Forgotten | Fate::OnDisk => {}
        }
    }
}

/// True for the parts of a record that belongs to a directory.
pub(super) fn are_names(parts: &[Found]) -> bool {
    parts.first().is_some_and(|part| part.header.kind() == Some(RecordKind::Names))
}

/// True if they have increasing numbers and belong to one record. Some may be missing, if the crash cut the write.
fn belong_together(parts: &[Found]) -> bool {
    let of = |part: &Found| (part.header.slot, part.header.generation, part.header.kind());
    parts.windows(2).all(|two| of(&two[0]) == of(&two[1]) && two[0].header.part < two[1].header.part)
}

/// File offsets are signed.
fn is_in_range(part: &Found) -> bool {
    let end = part.header.offset.checked_add(part.header.length.into());
    end.is_some_and(|end| end <= i64::MAX as u64)
}

fn is_whole(parts: &[Found]) -> bool {
    let numbered = parts.iter().enumerate().all(|(i, part)| part.header.part as usize == i);
    numbered && parts.last().is_some_and(|part| part.header.flags & RecordFlags::LAST != 0)
}
