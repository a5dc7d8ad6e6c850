//! Reading a journal after a crash: whole batches, in order, to the newest one that was reported durable.
//!
//! The batches that count form a chain: each names the one before it. That alone marks them, wherever they lie: a
//! batch usually follows where the last one ended, or at the ring's start if it did not fit behind it, and further on if
//! somebody who was replaced may still write there. So all headers of the ring are looked at first. Of several that name
//! the same predecessor, attempts to follow it, the one with the highest number counts: a leader that was replaced commits
//! nothing any more, and the one that takes its place draws a higher number.
//!
//! The chain's end is a torn write, unless some batch in the ring names a predecessor that is *not* in the
//! chain: that predecessor had been reported durable and is gone. The device lied, or is damaged.

use std::io;
use std::ops::Range;

use super::anchor::{ANCHOR_BYTES, Anchor, AnchorError};
use super::batch::BatchHeader;
use super::claims::Claim;

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
                    "the log's anchor contradicts itself or the device's length: the log was truncated or \
                     damaged"
                )
            }
            Self::Lost { last, missing } => write!(
                f,
                "the device reported batch {missing} of the log durable, and the batch is gone (the last one \
                 there is {last}): the device does not honour flush requests, or it is damaged"
            ),
            Self::Io(e) => write!(f, "cannot read the log: {e}"),
        }
    }
}

impl std::error::Error for JournalError {}

/// Reads the journal of `len` bytes that `read_at` gives, and hands every piece of the image to `apply`, in
/// order. On an error what was applied means nothing. `data` says where anything was ever written, in order; what lies
/// elsewhere is zeros.
///
/// # Errors
/// [`JournalError`].
pub fn read(
    len: u64,
    data: impl Iterator<Item = Range<u64>>,
    read_at: impl Fn(&mut [u8], u64) -> io::Result<()> + Sync,
    mut apply: impl FnMut(u64, &[u8]),
) -> Result<Recovered, JournalError> {
    let journal = Journal::of(len, read_at)?;
    let (anchor, mut found) = (journal.anchor, journal.begin());
    let claims = journal.claims(data)?;
    while let Some((header, body)) = journal.next(&claims, found.last)? {
        let Some(extents) = header.extents(&body, anchor.image) else { break };
        extents.for_each(|(offset, bytes)| apply(offset, bytes));
        found.follow(&header);
    }
    found.highest = claims.iter().map(|claim| claim.number).fold(found.highest, u64::max);
    let vouched = claims.iter().map(|claim| claim.previous).chain([anchor.last]);
    match vouched.filter(|missing| *missing > found.last).min() {
        Some(missing) => Err(JournalError::Lost { last: found.last, missing }),
        None => Ok(found),
    }
}

/// A journal that is read.
pub(super) struct Journal<R> {
    pub anchor: Anchor,
    pub read_at: R,
}

impl<R: Fn(&mut [u8], u64) -> io::Result<()>> Journal<R> {
    /// The journal of `len` bytes.
    pub fn of(len: u64, read_at: R) -> Result<Self, JournalError> {
        let mut copies = vec![0; 2 * ANCHOR_BYTES];
        read_at(&mut copies, 0)?;
        let (a, b) = copies.split_at(ANCHOR_BYTES);
        let anchor = Anchor::choose([a, b], len).map_err(JournalError::Anchor)?;
        Ok(Self { anchor, read_at })
    }

    /// What is found of it before its first batch.
    pub fn begin(&self) -> Recovered {
        let anchor = self.anchor;
        Recovered { anchor, last: anchor.before, highest: anchor.before, end: anchor.tail, batches: 0 }
    }

    /// The header in this line, of a batch that fits at this place.
    pub fn header(&self, line: &[u8], place: u64) -> Option<BatchHeader> {
        BatchHeader::parse(line, place, self.anchor.uuid_low())
            .filter(|h| h.len() <= self.anchor.size - place)
    }

    /// The header at this place.
    pub fn header_at(&self, place: u64) -> io::Result<Option<BatchHeader>> {
        let mut line = [0; crate::LINE];
        (self.read_at)(&mut line, place)?;
        Ok(self.header(&line, place))
    }

    /// The rest of this batch, if it is whole.
    pub fn body(&self, header: &BatchHeader) -> io::Result<Option<Vec<u8>>> {
        let mut body = vec![0; header.body() as usize];
        (self.read_at)(&mut body, header.position + crate::LINE as u64)?;
        let is_whole = header.extents(&body, self.anchor.image).is_some();
        Ok(is_whole.then_some(body))
    }

    /// The whole batch that follows this one, if there is one.
    fn next(&self, claims: &[Claim], last: u64) -> io::Result<Option<(BatchHeader, Vec<u8>)>> {
        let first = claims.partition_point(|claim| claim.previous < last);
        for claim in claims[first..].iter().take_while(|claim| claim.previous == last) {
            let Some(header) = self.header_at(claim.position)? else { continue };
            if let Some(body) = self.body(&header)? {
                return Ok(Some((header, body)));
            }
        }
        Ok(None)
    }
}

impl Recovered {
    /// This batch counts.
    pub(super) fn follow(&mut self, header: &BatchHeader) {
        self.last = header.number;
        self.end = header.position + header.len().next_multiple_of(u64::from(self.anchor.block));
        self.batches += 1;
    }
}
