//! A batch of a log without a device: other hosts keep copies, and it is committed when enough of them have confirmed it.
//!
//! The leader sends, and cannot be replaced meanwhile: batches are sent in the order of their numbers.

use rustix::io::Errno;
use seawall_media::Region;
use seawall_media::block::Draft;

use super::copies::{Copies, Sending, Standing};
use super::handle::Journal;
use super::lead::REPLACED;
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
    /// [`REPLACED`] if another thread leads by now, and nothing was sent; or if this host went on alone, and the batch
    /// has to be made anew. Otherwise as for [`Copies::write`].
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
            self.sent_by(image, lead, draft, |batch| {
                let sending = Sending { standing, number: batch.number, at: batch.at, len: batch.len };
                copies.write(&sending).map_err(|error| match error {
                    Errno::AGAIN => REPLACED,
                    error => fail(desk, error),
                })
            })
        })
    }
}
