//! Reading a journal that was closed: the few batches that count, and not the ring.
//!
//! Whoever closes a log says so in its anchor, once nobody can write to it any more. Then what counts is known without a
//! look at the ring: a batch that another one names as its predecessor had been reported durable, and the chain ends with
//! the one that the anchor names. If the chain that lies there does not lead to that one, or goes on behind it, then the
//! mark proves nothing, and the whole ring is to be read.

use std::io;

use super::anchor::RING_AT;
use super::batch::BatchHeader;
use super::chain::{Journal, JournalError, Recovered};

/// Reads the journal of `len` bytes that `read_at` gives, as [`read`](super::read()) does, if it was closed. `None`: it was
/// not, and nothing was applied.
///
/// # Errors
/// [`JournalError`].
pub fn read_closed(
    len: u64,
    read_at: impl Fn(&mut [u8], u64) -> io::Result<()>,
    mut apply: impl FnMut(u64, &[u8]),
) -> Result<Option<Recovered>, JournalError> {
    let journal = Journal::of(len, read_at)?;
    let anchor = journal.anchor;
    if anchor.closed == 0 || anchor.closed < anchor.last {
        return Ok(None);
    }
    let (mut found, mut batches) = (journal.begin(), Vec::new());
    while found.last < anchor.last {
        let Some((header, body)) = journal.behind(&found)? else { return Ok(None) };
        found.follow(&header);
        batches.push((header, body));
    }
    if found.last != anchor.last || journal.goes_on(&found)? {
        return Ok(None);
    }
    for (header, body) in &batches {
        header
            .extents(body, anchor.image)
            .into_iter()
            .flatten()
            .for_each(|(offset, bytes)| apply(offset, bytes));
    }
    found.highest = anchor.closed;
    Ok(Some(found))
}

impl<R: Fn(&mut [u8], u64) -> io::Result<()>> Journal<R> {
    /// Where the next batch usually is.
    fn usual(&self, found: &Recovered) -> impl Iterator<Item = u64> + use<R> {
        [found.end, RING_AT].into_iter().filter({
            let size = self.anchor.size;
            move |place| *place < size
        })
    }

    /// The whole batch that follows, if it lies where one usually does.
    fn behind(&self, found: &Recovered) -> io::Result<Option<(BatchHeader, Vec<u8>)>> {
        for place in self.usual(found) {
            let Some(header) = self.header_at(place)?.filter(|h| h.previous == found.last) else { continue };
            if let Some(body) = self.body(&header)? {
                return Ok(Some((header, body)));
            }
        }
        Ok(None)
    }

    /// True if somebody began another batch behind the last one.
    fn goes_on(&self, found: &Recovered) -> io::Result<bool> {
        for place in self.usual(found) {
            if self.header_at(place)?.is_some_and(|h| h.previous >= found.last) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
