//! A batch: bytes of the image, gathered, written, and committed.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use rustix::io::Errno;
use seawall_media::block::Draft;
use seawall_media::{LINE, Region};
use seawall_stats::ticks;
use seawall_wire::desk::LastWord;

use super::handle::Journal;
use super::lead::REPLACED;
use super::room::{Room, place};
use super::writer::Writer;
use super::{company, mirror};

impl Journal {
    pub(super) fn draft<'a>(&self, image: &'a Region, lead: &Writer<'_>) -> Draft<'a> {
        let desk = self.desk(image);
        Draft::begin(image, desk.buffer(lead.seat()), desk.table(lead.seat()))
    }

    /// Takes a range into the batch; writes the batch and begins another one whenever it is full.
    pub(super) fn add<'a>(
        &self,
        image: &'a Region,
        lead: &Writer<'_>,
        draft: &mut Draft<'a>,
        range: (usize, usize),
        room: Room,
    ) -> Result<(), Errno> {
        let (mut at, end) = (range.0, range.0 + range.1);
        while at < end {
            let piece = draft.room().min(end - at);
            if piece == 0 {
                let full = core::mem::replace(draft, self.draft(image, lead));
                self.write(image, lead, full, room)?;
                continue;
            }
            draft.take(at, piece);
            at += piece;
        }
        Ok(())
    }

    /// Writes a batch and commits it. An empty batch writes nothing.
    ///
    /// # Errors
    /// [`REPLACED`] if another thread leads by now: then the batch does not count.
    pub(super) fn write(
        &self,
        image: &Region,
        lead: &Writer<'_>,
        draft: Draft<'_>,
        room: Room,
    ) -> Result<(), Errno> {
        if draft.is_empty() {
            return Ok(());
        }
        if let Some(links) = lead.links() {
            return self.send_directly(image, lead, links, draft);
        }
        #[cfg(feature = "std")]
        if let Some(copies) = self.way.copies() {
            return self.send(image, lead, draft, copies);
        }
        let desk = self.desk(image);
        if desk.closed().load(Relaxed) != 0 {
            lead.pinned(|| mirror::reopen(lead, image))?;
        }
        let block = desk.block().load(Relaxed);
        let (last, end) = desk.newest();
        let (data, size) = (draft.data() as u64, draft.size(block) as u64);
        let position = place(desk, lead.seat(), end, size, room).ok_or(Errno::NOSPC)?;
        // This comes before the check whether it still leads: a thread that replaces it draws a higher number.
        let number = desk.claimed().fetch_add(1, SeqCst) + 1;
        if !lead.claim(position, size) {
            return Err(REPLACED);
        }
        draft.seal(number, last.number(), position, desk.uuid_low().load(Relaxed), block);
        let (buffer, _) = desk.buffer(lead.seat());
        let written = mirror::write(lead, image, buffer, size as usize, position);
        lead.is_through();
        company::wrote(desk, written?);
        desk.seat(lead.seat()).end().store(position + size, SeqCst);
        commit(lead, (last, number), (size, data))?;
        #[cfg(feature = "std")]
        if room == Room::Cleaning {
            desk.cleaned().fetch_add(size, Relaxed);
        }
        Ok(())
    }
}

/// A batch of a log without a device, ready to be sent.
pub(super) struct Sealed {
    /// Its number.
    pub number: u64,
    /// The newest one that counts, which it follows.
    pub previous: u64,
    /// Where it lies in the image's memory, and how many bytes it has.
    pub at: usize,
    pub len: usize,
    /// When it was ready, in ticks.
    pub began: u64,
}

impl Journal {
    /// Seals a batch that has no place on a device, and has `send` send it. `send` returns once enough have confirmed
    /// the batch, which is then committed.
    ///
    /// # Errors
    /// The error of `send`; [`REPLACED`] if another thread leads by now: then the batch does not count.
    pub(super) fn sent_by(
        &self,
        image: &Region,
        lead: &Writer<'_>,
        draft: Draft<'_>,
        send: impl FnOnce(&Sealed) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let desk = self.desk(image);
        let (last, data) = (desk.newest().0, draft.data() as u64);
        let (number, previous) = (desk.claimed().fetch_add(1, SeqCst) + 1, last.number());
        let len = draft.seal(number, previous, 0, desk.uuid_low().load(Relaxed), LINE as u32);
        let began = ticks();
        let sent = send(&Sealed { number, previous, at: desk.buffer(lead.seat()).0, len, began });
        let ended = ticks();
        lead.has_spent(ended.wrapping_sub(began));
        sent?;
        company::wrote(desk, began..ended);
        commit(lead, (last, number), (len as u64, data))
    }
}

/// Commits a batch that follows `last`, and counts its bytes, and the bytes of the image in it.
///
/// # Errors
/// [`REPLACED`] if another thread leads by now: then the batch does not count.
fn commit(lead: &Writer<'_>, (last, number): (LastWord, u64), (size, data): (u64, u64)) -> Result<(), Errno> {
    let (desk, next) = (lead.desk(), LastWord::new(number, lead.seat()));
    desk.last().compare_exchange(last.0, next.0, SeqCst, Relaxed).map_err(|_| REPLACED)?;
    desk.replaced().store(0, Relaxed);
    desk.writes().fetch_add(1, Relaxed);
    desk.bytes().fetch_add(size, Relaxed);
    desk.data().fetch_add(data, Relaxed);
    Ok(())
}
