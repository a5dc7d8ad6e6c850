//! A leader that writes: the lead, and the devices of the copies that count.

use core::cell::Cell;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use seawall_media::Region;
use seawall_media::block::Device;
use seawall_wire::desk::Desk;
use seawall_wire::keeper::KEEPERS_MAX;

use super::lead::{Lead, REPLACED};
use super::way::{Lender, Links, Way};

/// A leader with the devices at hand.
pub(super) struct Writer<'a> {
    lead: Lead<'a>,
    devices: [Option<BorrowedFd<'a>>; 2],
    /// The connections to the keepers of a log to which any process sends; valid for the `given` number of
    /// [`Lead::desk`] at that time.
    links: Option<Links<'a>>,
    given: u32,
    lent: bool,
    spent: Cell<u64>,
}

impl<'a> Writer<'a> {
    /// # Errors
    /// EIO once the device failed; EBADF if this process cannot reach every copy that is written.
    pub(super) fn new(lead: Lead<'a>, way: &'a Way) -> Result<Self, Errno> {
        let desk = lead.desk();
        if desk.failed().load(SeqCst) != 0 {
            return Err(Errno::IO);
        }
        // A number of ours may belong to a device that another one has replaced.
        if way.given().is_some_and(|given| given != desk.given().load(SeqCst)) {
            return Err(Errno::BADF);
        }
        let given = way.given().unwrap_or_default();
        #[cfg(feature = "std")]
        if way.copies().is_some() {
            let devices = [None, None];
            return Ok(Self { lead, devices, links: None, given, lent: false, spent: Cell::new(0) });
        }
        if let Some(lender) = way.lender().filter(|_| desk.size().load(Relaxed) == 0) {
            let (devices, links) = ([None, None], Some(usable(desk, lender)?));
            return Ok(Self { lead, devices, links, given, lent: true, spent: Cell::new(0) });
        }
        let wanted = written(desk) | joining(desk);
        let devices = [
            if wanted & 1 != 0 { Some(way.device()?) } else { None },
            if wanted & 2 != 0 { Some(way.mirror().ok_or(Errno::BADF)?) } else { None },
        ];
        let lent = way.lender().is_some();
        Ok(Self { lead, devices, links: None, given, lent, spent: Cell::new(0) })
    }

    /// The connections through which it sends, if it does.
    pub(super) fn links(&self) -> Option<&Links<'a>> {
        self.links.as_ref()
    }

    /// [`Desk::given`] for its descriptors.
    pub(super) fn given(&self) -> u32 {
        self.given
    }

    /// See [`Lead::is_held`].
    pub(super) fn is_held(&self) -> bool {
        self.lead.is_held()
    }

    /// The lock's word for it.
    pub(super) fn word(&self) -> u64 {
        self.lead.word()
    }

    /// Adds the ticks of one more write.
    pub(super) fn has_spent(&self, ticks: u64) {
        self.spent.set(self.spent.get() + ticks);
    }

    /// Ticks that its writes took.
    pub(super) fn spent(&self) -> u64 {
        self.spent.get()
    }

    pub(super) fn desk(&self) -> Desk<'a> {
        self.lead.desk()
    }

    /// The seat that it has to itself.
    pub(super) fn seat(&self) -> u32 {
        self.lead.seat()
    }

    /// See [`Lead::claim`].
    pub(super) fn claim(&self, position: u64, size: u64) -> bool {
        self.lead.claim(position, size)
    }

    /// See [`Lead::is_through`].
    pub(super) fn is_through(&self) {
        self.lead.is_through();
    }

    /// See [`Lead::pin`].
    pub(super) fn pin(&self) -> bool {
        self.lead.pin()
    }

    /// It can be replaced again.
    pub(super) fn unpin(&self) {
        self.lead.unpin();
    }

    /// Acts while it cannot be replaced.
    ///
    /// # Errors
    /// [`REPLACED`] if it already was: nothing was done.
    pub(super) fn pinned<R>(&self, act: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
        if self.lead.is_pinned() {
            return act();
        }
        if !self.lead.pin() {
            return Err(REPLACED);
        }
        let done = act();
        self.lead.unpin();
        done
    }

    /// True for an error of this process alone: others can write, and what this process wrote does not count.
    pub(super) fn is_ours_alone(&self, error: Errno) -> bool {
        self.lent && is_of_the_process(error)
    }

    /// Writes to one copy.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn to(
        &self,
        copy: usize,
        image: &Region,
        at: usize,
        len: usize,
        position: u64,
    ) -> Result<(), Errno> {
        let device = self.devices[copy].ok_or(Errno::BADF)?;
        Device::write(device, image, at, len, position)
    }
}

/// The connections to all keepers that get batches.
///
/// # Errors
/// BADF if only the daemon sends now, or one of the connections is missing here.
fn usable(desk: Desk<'_>, lender: &'static dyn Lender) -> Result<Links<'static>, Errno> {
    let mut links: Links<'_> = [None; KEEPERS_MAX];
    if desk.acks().load(SeqCst) == 0 {
        return Err(Errno::BADF);
    }
    for (keeper, link) in links.iter_mut().enumerate().filter(|(i, _)| desk.link(*i).takes_batches()) {
        *link = Some(lender.keeper(keeper).ok_or(Errno::BADF)?);
    }
    Ok(links)
}

/// The copies that are written, a bit each.
pub(super) fn written(desk: Desk<'_>) -> u32 {
    desk.copies().load(SeqCst).max(1)
}

/// The bit of a copy that is being rebuilt and does not count.
pub(super) fn joining(desk: Desk<'_>) -> u32 {
    desk.joining().load(SeqCst) & 3 & !written(desk)
}

/// True for an error that says nothing about the device.
fn is_of_the_process(error: Errno) -> bool {
    // A number that names something else; RLIMIT_FSIZE; seccomp(2), in either manner; no memory to write from.
    matches!(error, Errno::BADF | Errno::FBIG | Errno::PERM | Errno::ACCESS | Errno::NOSYS | Errno::NOMEM)
}

/// Nothing is hardened any more.
pub(super) fn fail(desk: Desk<'_>, error: Errno) -> Errno {
    desk.failed().store(error.raw_os_error() as u32, SeqCst);
    Errno::IO
}
