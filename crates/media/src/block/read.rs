//! Reading a journal after a crash: whole batches, in order, to the newest one that was reported durable.
//!
//! One batch is written at a time, so the ones that count form a chain: each names the one before it. The chain
//! goes on where the last one ended, or at the ring's start if the next did not fit behind it. If an attempt
//! was given up (its writer died) the next one may lie at the other of these two places: of two that name the
//! same predecessor the one with the higher number counts.
//!
//! The chain's end is a torn write, unless some batch in the ring names a predecessor that is *not* in the
//! chain: that predecessor had been reported durable and is gone. The device lied, or is damaged.

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
    let mut found =
        Recovered { anchor, last: anchor.before, highest: anchor.before, end: anchor.tail, batches: 0 };
    while let Some((header, body)) = journal.next(&found)? {
        let Some(extents) = header.extents(&body, anchor.image) else { break };
        extents.for_each(|(offset, bytes)| apply(offset, bytes));
        found.last = header.number;
        found.end = header.position + header.len().next_multiple_of(u64::from(anchor.block));
        found.batches += 1;
    }
    journal.search(&mut found)?;
    if found.last < anchor.last {
        return Err(JournalError::Lost { last: found.last, missing: anchor.last });
    }
    Ok(found)
}

struct Journal<R> {
    anchor: Anchor,
    read_at: R,
}

impl<R: Fn(&mut [u8], u64) -> io::Result<()>> Journal<R> {
    /// The whole batch that continues the chain, if there is one.
    fn next(&self, found: &Recovered) -> io::Result<Option<(BatchHeader, Vec<u8>)>> {
        let mut best: Option<(BatchHeader, Vec<u8>)> = None;
        for place in [found.end, RING_AT] {
            let Some(header) = self.header(place)? else { continue };
            let better = best.as_ref().is_none_or(|(other, _)| other.number < header.number);
            if header.previous != found.last || !better {
                continue;
            }
            let mut body = vec![0; header.body() as usize];
            (self.read_at)(&mut body, place + crate::LINE as u64)?;
            if header.extents(&body, self.anchor.image).is_some() {
                best = Some((header, body));
            }
        }
        Ok(best)
    }

    /// A valid header at this place, of a batch that fits there.
    fn header(&self, place: u64) -> io::Result<Option<BatchHeader>> {
        if place + u64::from(self.anchor.block) > self.anchor.size {
            return Ok(None);
        }
        let mut line = [0; crate::LINE];
        (self.read_at)(&mut line, place)?;
        let fits = |h: &BatchHeader| h.len() <= self.anchor.size - place;
        Ok(BatchHeader::parse(&line, place, self.anchor.uuid_low()).filter(fits))
    }

    /// Looks at every block of the ring for a batch that vouches for one behind the chain's end.
    fn search(&self, found: &mut Recovered) -> Result<(), JournalError> {
        const PIECE: u64 = 1 << 20;
        let (size, block) = (self.anchor.size, u64::from(self.anchor.block));
        let mut piece = vec![0; PIECE as usize];
        let mut from = RING_AT;
        while from < size {
            let bytes = &mut piece[..PIECE.min(size - from) as usize];
            (self.read_at)(bytes, from)?;
            for (i, line) in bytes.chunks_exact(block as usize).enumerate() {
                let place = from + i as u64 * block;
                let Some(header) = BatchHeader::parse(line, place, self.anchor.uuid_low()) else { continue };
                found.highest = found.highest.max(header.number);
                if header.previous > found.last {
                    return Err(JournalError::Lost { last: found.last, missing: header.previous });
                }
            }
            from += PIECE;
        }
        Ok(())
    }
}
