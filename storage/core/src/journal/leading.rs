//! Leading: holding the journal's lock, with its devices at hand.

use rustix::io::Errno;
use seawall_media::Region;

#[cfg(feature = "std")]
use core::sync::atomic::Ordering::SeqCst;

use super::handle::Journal;
use super::lead::{REPLACED, take_lead};
use super::seat::{bury, sitting};
use super::writer::Writer;
use crate::thread::Thread;
use seawall_wire::desk::Seat;

impl Journal {
    /// Leads, waiting as long as it takes.
    ///
    /// # Errors
    /// EIO once the device failed; EBADF without a way to it.
    pub(super) fn lead<'a>(&'a self, image: &'a Region) -> Result<Writer<'a>, Errno> {
        Writer::new(take_lead(self.desk(image), self.client()), &self.way)
    }

    /// Leads and acts, repeatedly as long as another thread takes the lead before the act is done.
    pub(super) fn leading<R>(
        &self,
        image: &Region,
        mut act: impl FnMut(&Writer<'_>) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        loop {
            match act(&self.lead(image)?) {
                Err(REPLACED) => {}
                done => return done,
            }
        }
    }

    /// Leads, and cannot be replaced.
    ///
    /// # Errors
    /// As for [`lead`](Self::lead).
    pub(super) fn lead_pinned<'a>(&'a self, image: &'a Region) -> Result<Writer<'a>, Errno> {
        loop {
            let lead = self.lead(image)?;
            if lead.pin() {
                return Ok(lead);
            }
        }
    }

    /// True while a thread of this process leads, or led and does not know yet that another one took its place: it may
    /// write through descriptors that it looked at before.
    pub fn is_led_by_us(&self, image: &Region) -> bool {
        let us = Thread::this();
        self.desk(image).seats().any(|seat| sitting(seat).is_some_and(|thread| thread.is_of_process_of(us)))
    }
}

impl Journal {
    /// Frees what this process still holds from before its exec: the thread that led is gone, but a living
    /// thread has the same numbers. `nobody_leads` is true before any thread of this program could lead; one thread
    /// asks it, once.
    pub fn bury_former_self(&self, image: &Region, nobody_leads: impl FnOnce() -> bool) {
        let (desk, us) = (self.desk(image), Thread::this());
        let is_ours = |seat: &Seat<'_>| sitting(*seat).is_some_and(|thread| thread.is_of_process_of(us));
        if desk.seats().any(|seat| is_ours(&seat)) && nobody_leads() {
            bury(desk, |seat| is_ours(&seat));
        }
    }

    /// Frees what these dead clients hold whose thread numbers belong to another namespace and mean nothing here.
    #[cfg(feature = "std")]
    pub fn bury_clients(&self, image: &Region, is_dead: impl Fn(u32) -> bool) {
        let is_far = |seat: Seat<'_>| sitting(seat).is_some_and(|thread| !thread.is_near());
        let client = |seat: Seat<'_>| seat.client().load(SeqCst).checked_sub(1);
        bury(self.desk(image), |seat| is_far(seat) && client(seat).is_some_and(&is_dead));
    }
}
