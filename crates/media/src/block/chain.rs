//! Reading a journal after a crash: whole batches, in order, to the newest one that was reported durable.
//!
//! The batches that count form a chain: each names the one before it. They are told by that alone, wherever they lie: a
//! batch usually follows where the last one ended, or at the ring's start if it did not fit behind it, and further on if
//! somebody who was replaced may still write there. So all headers of the ring are looked at first. Of several that name
//! the same predecessor, attempts to follow it, the one with the highest number counts: who is replaced commits nothing
//! any more, and who replaces draws a higher number.
//!
//! The chain's end is a torn write, unless some batch in the ring names a predecessor that is *not* in the
//! chain: that predecessor had been reported durable and is gone. The device lied, or is damaged.

use std::cmp::Reverse;
use std::io;

use super::anchor::{ANCHOR_BYTES, Anchor, AnchorError, RING_AT};
use super::batch::BatchHeader;

/// What a journal came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The anchor.
    pub anchor: Anchor,
    /// The last batch that counts.
    pub last: u64,
    /// The highest number seen anywhere: the next one must be higher.
    pub highest: u64,
    /// Where the next batch would begin.
    pub end: u64,
    /// Batches applied.
    pub batches: u64,
}

/// Why a journal could not be read.
#[derive(Debug)]
pub enum JournalError {
    /// The anchors.
    Anchor(AnchorError),
    /// A batch that was reported durable is not there.
    Lost {
        /// The last batch that is.
        last: u64,
        /// One that a later batch says was durable.
        missing: u64,
    },
    /// It cannot be read.
    Io(io::Error),
}

impl From<io::Error> for JournalError {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

impl std::fmt::Display for JournalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Anchor(AnchorError::NotAJournal) => write!(f, "this is not a Seawall log"),
            Self::Anchor(AnchorError::Version(v)) => {
                write!(f, "the log has format version {v}, which this program does not know")
            }
            Self::Anchor(AnchorError::Damaged) => write!(f, "both anchors of the log are damaged"),
            Self::Anchor(AnchorError::Geometry) => {
                write!(
                    f,
                    "the log's anchor contradicts itself or the device's length: it was truncated or damaged"
                )
            }
            Self::Lost { last, missing } => write!(
                f,
                "batch {missing} of the log was reported durable by its device and is gone (the last one there is \
                 {last}): the device does not honour its flush, or is damaged"
            ),
            Self::Io(e) => write!(f, "the log cannot be read: {e}"),
        }
    }
}

impl std::error::Error for JournalError {}

/// Reads the journal of `len` bytes that `read_at` gives, and hands every piece of the image to `apply`, in
/// order. On an error what was applied means nothing.
///
/// # Errors
/// [`JournalError`].
pub fn read(
    len: u64,
    read_at: impl Fn(&mut [u8], u64) -> io::Result<()>,
    mut apply: impl FnMut(u64, &[u8]),
) -> Result<Recovered, JournalError> {
    let mut copies = vec![0; 2 * ANCHOR_BYTES];
    read_at(&mut copies, 0)?;
    let (a, b) = copies.split_at(ANCHOR_BYTES);
    let anchor = Anchor::choose([a, b], len).map_err(JournalError::Anchor)?;
    let journal = Journal { anchor, read_at };
    let claims = journal.claims()?;
    let mut found =
        Recovered { anchor, last: anchor.before, highest: anchor.before, end: anchor.tail, batches: 0 };
    while let Some((header, body)) = journal.next(&claims, found.last)? {
        let Some(extents) = header.extents(&body, anchor.image) else { break };
        extents.for_each(|(offset, bytes)| apply(offset, bytes));
        found.last = header.number;
        found.end = header.position + header.len().next_multiple_of(u64::from(anchor.block));
        found.batches += 1;
    }
    found.highest = claims.iter().map(|claim| claim.number).fold(found.highest, u64::max);
    let vouched = claims.iter().map(|claim| claim.previous).chain([anchor.last]);
    match vouched.filter(|missing| *missing > found.last).min() {
        Some(missing) => Err(JournalError::Lost { last: found.last, missing }),
        None => Ok(found),
    }
}

/// What a header says of the chain. As small as it can be: a large ring has millions of them.
struct Claim {
    previous: u64,
    number: u64,
    position: u64,
}

struct Journal<R> {
    anchor: Anchor,
    read_at: R,
}

impl<R: Fn(&mut [u8], u64) -> io::Result<()>> Journal<R> {
    /// What all valid headers of the ring say, those that name the same predecessor next to each other, the highest number
    /// first.
    fn claims(&self) -> io::Result<Vec<Claim>> {
        const PIECE: u64 = 1 << 20;
        let (size, block) = (self.anchor.size, u64::from(self.anchor.block));
        let (mut piece, mut claims) = (vec![0; PIECE as usize], Vec::new());
        for from in (RING_AT..size).step_by(PIECE as usize) {
            let bytes = &mut piece[..PIECE.min(size - from) as usize];
            (self.read_at)(bytes, from)?;
            let places = (from..size).step_by(block as usize);
            let lines = bytes.chunks_exact(block as usize).zip(places);
            let headers = lines.filter_map(|(line, place)| self.header(line, place));
            claims.extend(headers.map(|h| Claim {
                previous: h.previous,
                number: h.number,
                position: h.position,
            }));
        }
        claims.sort_unstable_by_key(|claim| (claim.previous, Reverse(claim.number)));
        Ok(claims)
    }

    /// The header at this place, of a batch that fits there.
    fn header(&self, line: &[u8], place: u64) -> Option<BatchHeader> {
        BatchHeader::parse(line, place, self.anchor.uuid_low())
            .filter(|h| h.len() <= self.anchor.size - place)
    }

    /// The whole batch that follows this one, if there is one.
    fn next(&self, claims: &[Claim], last: u64) -> io::Result<Option<(BatchHeader, Vec<u8>)>> {
        let first = claims.partition_point(|claim| claim.previous < last);
        for claim in claims[first..].iter().take_while(|claim| claim.previous == last) {
            let mut line = [0; crate::LINE];
            (self.read_at)(&mut line, claim.position)?;
            let Some(header) = self.header(&line, claim.position) else { continue };
            let mut body = vec![0; header.body() as usize];
            (self.read_at)(&mut body, header.position + crate::LINE as u64)?;
            if header.extents(&body, self.anchor.image).is_some() {
                return Ok(Some((header, body)));
            }
        }
        Ok(None)
    }
}
