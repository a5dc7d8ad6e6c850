//! A batch of a log without a device: other hosts keep copies, and it is committed when enough of them have confirmed it.
//!
//! Whoever leads sends, and cannot be replaced meanwhile: batches are sent in the order of their numbers.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use rustix::io::Errno;
use seawall_media::block::Draft;
use seawall_media::{LINE, Region};
use seawall_stats::ticks;

use super::batch::commit;
use super::company;
use super::copies::{Copies, Sending, Standing};
use super::handle::Journal;
use super::writer::{Writer, fail};

impl Journal {
    /// Acts while the log stands: nobody commits a batch or changes a table.
    ///
    /// # Errors
    /// EIO once the copies failed; EBADF without a way to them.
    pub fn standing<R>(&self, image: &Region, act: impl FnOnce(&Standing<'_>) -> R) -> Result<R, Errno> {
        let lead = self.lead_pinned(image)?;
        Standing::of(lead.desk(), image).map(|standing| act(&standing))
    }

    /// Sends a batch, and commits it.
    ///
    /// # Errors
    /// [`REPLACED`](super::lead::REPLACED) if somebody else leads by now: nothing was sent. Else as for [`Copies::write`].
    pub(super) fn send(
        &self,
        image: &Region,
        lead: &Writer<'_>,
        draft: Draft<'_>,
        copies: &dyn Copies,
    ) -> Result<(), Errno> {
        lead.pinned(|| {
            let desk = self.desk(image);
            let standing = Standing::of(desk, image)?;
            let (last, data) = (desk.newest().0, draft.data() as u64);
            let number = desk.claimed().fetch_add(1, SeqCst) + 1;
            let len = draft.seal(number, last.number(), 0, desk.uuid_low().load(Relaxed), LINE as u32);
            let at = desk.buffer(lead.seat()).0;
            let began = ticks();
            let sent = copies.write(&Sending { standing, number, at, len });
            let ended = ticks();
            lead.has_spent(ended.wrapping_sub(began));
            sent.map_err(|error| fail(desk, error))?;
            company::wrote(desk, began..ended);
            commit(lead, (last, number), (len as u64, data))
        })
    }
}
