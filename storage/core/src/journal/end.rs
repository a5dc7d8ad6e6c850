//! The end of an image: nothing is written from it any more, and the journal is marked if it is closed.
//!
//! The mark saves the next start from reading the whole ring (`seawall_media::block::read_closed`). It is removed
//! before the next batch is written (`batch`, [`mirror::reopen`]).

use core::sync::atomic::Ordering::SeqCst;
use core::time::Duration;

use rustix::io::Errno;
use seawall_media::Region;
use seawall_media::block::RING_AT;

use super::handle::{GIVEN_UP, Journal};
use super::parts::{PIECE, pieces};
use super::room::{Room, ring};
use super::writer::Writer;
use super::{mirror, seat};
use crate::format::Layout;

impl Journal {
    /// True for a journal that was closed, and in which nothing was written since.
    pub fn is_closed(&self, image: &Region) -> bool {
        self.desk(image).closed().load(SeqCst) != 0
    }

    /// Nothing is ever written from this image again, whichever processes have it mapped. Waits for leaders that were
    /// replaced and may still write. `closed`: the layout of a log in which nothing is registered, so that nothing is
    /// live.
    pub fn give_up(&self, image: &Region, closed: Option<Layout>) {
        let desk = self.desk(image);
        // On a device that failed, nobody writes anyway.
        let Ok(lead) = self.lead_pinned(image) else { return };
        while seat::claimed_by_others(desk, lead.seat()).next().is_some() {
            seat::bury_dead(desk);
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(layout) = closed.filter(|_| !self.has_no_ring(image)) {
            // Without the mark the next start takes longer.
            let _ = self.say_closed(image, &lead, layout);
        }
        desk.failed().store(GIVEN_UP, SeqCst);
    }

    /// From now on only the tables count, and nothing follows them.
    fn say_closed(&self, image: &Region, lead: &Writer<'_>, layout: Layout) -> Result<(), Errno> {
        let desk = self.desk(image);
        let (last, end) = desk.newest();
        let mut draft = self.draft(image, lead);
        for at in pieces(image, layout, 0) {
            self.add(image, lead, &mut draft, (at, PIECE), Room::Cleaning)?;
        }
        self.write(image, lead, draft, Room::Cleaning)?;
        let tail = if end >= ring(desk).size { RING_AT } else { end };
        mirror::close(lead, image, (tail, last.number()))
    }
}
