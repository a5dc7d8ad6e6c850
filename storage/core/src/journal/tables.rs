//! Changes of tables: in the image, with the lock held, and on the device before they count.

use rustix::io::Errno;
use seawall_media::{LINE, Region};

use super::handle::Journal;
use super::lead::REPLACED;
use super::room::Room;
use super::writer::Writer;

impl Journal {
    /// Makes a change and writes these ranges of the image. See `Store::change`.
    ///
    /// # Errors
    /// As there; ENOSPC if the journal is full to the last block; EBADF without a way to the device.
    pub fn change<R>(
        &self,
        image: &Region,
        ranges: &[(usize, usize)],
        change: impl FnOnce() -> R,
    ) -> Result<R, Errno> {
        let lead = self.lead_pinned(image)?;
        let result = change();
        lead.unpin();
        match self.put(image, &lead, ranges) {
            Err(REPLACED) => self.leading(image, |lead| self.put(image, lead, ranges)),
            done => done,
        }?;
        Ok(result)
    }

    /// Writes ranges of tables as they are now.
    fn put(&self, image: &Region, lead: &Writer<'_>, ranges: &[(usize, usize)]) -> Result<(), Errno> {
        let mut draft = self.draft(image, lead);
        for (at, len) in ranges {
            let (from, to) = (at / LINE * LINE, (at + len).next_multiple_of(LINE));
            self.add(image, lead, &mut draft, (from, to - from), Room::Tables)?;
        }
        self.write(image, lead, draft, Room::Tables)
    }

    /// Has a process that can reach the device raise a file's watermark.
    ///
    /// # Errors
    /// EIO if none does it.
    #[cold]
    pub fn retire(&self, slot: u32, generation: u32, lsn: u64) -> Result<(), Errno> {
        self.way.lender().map_or(Err(Errno::IO), |lender| lender.retire(slot, generation, lsn))
    }
}
