//! The way to the journal's device, or to both devices of a mirrored one: a descriptor of this process's own, or one that lies among an application's.
//!
//! What lies among an application's may have been closed behind our back, and its number may name something else by
//! now. So it is looked at whenever somebody leads; where it is gone the daemon leads instead.

use core::cell::Cell;
use core::ops::Range;
use core::sync::atomic::Ordering::SeqCst;
#[cfg(feature = "std")]
use std::sync::{Arc, OnceLock};

use rustix::fd::{AsFd, BorrowedFd};
use seawall_media::Region;
use seawall_media::block::Device;
use seawall_stats::ticks;
use seawall_wire::desk::Desk;

use super::lock::{Lead, REPLACED};
use super::mirror;
use crate::Errno;

/// What a front that cannot rely on its descriptors has instead.
pub trait Lender: Sync {
    /// The journal's device, of a mirrored one that of its first copy, if its descriptor is still what it was.
    fn device(&self) -> Option<BorrowedFd<'_>>;

    /// The device of a mirrored journal's second copy, if its descriptor is still what it was.
    fn mirror(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// [`Desk::given`] when these descriptors were lent.
    fn given(&self) -> u32 {
        0
    }

    /// Has the daemon make durable everything that is in the log now.
    ///
    /// # Errors
    /// As for [`Journal::harden`](super::Journal::harden); EIO if the daemon does not do it.
    fn harden(&self) -> Result<(), Errno>;

    /// Has the daemon raise a file's watermark.
    ///
    /// # Errors
    /// EIO if it does not do it.
    fn retire(&self, slot: u32, generation: u32, lsn: u64) -> Result<(), Errno>;
}

/// Descriptors of both copies, and those that took their place.
#[cfg(feature = "std")]
pub struct Pair {
    devices: [Device; 2],
    given: u32,
    newer: OnceLock<Box<Self>>,
}

#[cfg(feature = "std")]
impl Pair {
    /// Those of the first and the second copy, which were the right ones when [`Desk::given`] was `given`. In the place
    /// of one that is gone lies the other one, which is not written by that number.
    pub fn new(devices: [Device; 2], given: u32) -> Self {
        Self { devices, given, newer: OnceLock::new() }
    }

    fn newest(&self) -> &Self {
        core::iter::successors(Some(self), |pair| Some(&**pair.newer.get()?)).last().unwrap_or(self)
    }

    /// These are used from now on. The former ones stay open: somebody may be about to look at them.
    pub(super) fn replace(&self, by: Self) -> Result<(), Errno> {
        self.newest().newer.set(Box::new(by)).map_err(|_| Errno::BUSY)
    }
}

/// How a process reaches the journal's device.
pub enum Way {
    /// By a descriptor that is its own.
    Own(Device),
    /// By two that are its own: those of both copies, shared by all journals of the pool in this process.
    #[cfg(feature = "std")]
    Mirrored(Arc<Pair>),
    /// By one among an application's, or by the daemon.
    Lent(&'static dyn Lender),
}

impl Way {
    /// The descriptor, of a mirrored journal that of its first copy.
    ///
    /// # Errors
    /// EBADF if it was taken away.
    pub fn device(&self) -> Result<BorrowedFd<'_>, Errno> {
        match self {
            Self::Own(device) => Ok(device.as_fd()),
            #[cfg(feature = "std")]
            Self::Mirrored(pair) => Ok(pair.newest().devices[0].as_fd()),
            Self::Lent(lender) => lender.device().ok_or(Errno::BADF),
        }
    }

    /// The descriptor of a mirrored journal's second copy.
    pub fn mirror(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Own(_) => None,
            #[cfg(feature = "std")]
            Self::Mirrored(pair) => Some(pair.newest().devices[1].as_fd()),
            Self::Lent(lender) => lender.mirror(),
        }
    }

    /// [`Desk::given`] when its descriptors were the right ones; `None` if they cannot be replaced.
    fn given(&self) -> Option<u32> {
        match self {
            Self::Own(_) => None,
            #[cfg(feature = "std")]
            Self::Mirrored(pair) => Some(pair.newest().given),
            Self::Lent(lender) => Some(lender.given()),
        }
    }

    /// What a daemon lends: its own descriptors, of a mirrored journal those of both copies, and of which
    /// [`Desk::given`] these are.
    #[cfg(feature = "std")]
    pub fn lend(&self) -> (u32, Vec<BorrowedFd<'_>>) {
        match self {
            Self::Own(device) => (0, vec![device.as_fd()]),
            Self::Mirrored(pair) => {
                let newest = pair.newest();
                (newest.given, newest.devices.iter().map(AsFd::as_fd).collect())
            }
            Self::Lent(_) => (0, Vec::new()),
        }
    }

    /// The same way once more, for another journal of this process.
    ///
    /// # Errors
    /// EMFILE and the like.
    #[cfg(feature = "std")]
    pub fn again(&self) -> std::io::Result<Self> {
        Ok(match self {
            Self::Own(device) => Self::Own(Device::new(device.as_fd().try_clone_to_owned()?)),
            Self::Mirrored(pair) => Self::Mirrored(Arc::clone(pair)),
            Self::Lent(lender) => Self::Lent(*lender),
        })
    }

    /// Who leads where this process cannot.
    pub(super) fn lender(&self) -> Option<&'static dyn Lender> {
        match self {
            Self::Lent(lender) => Some(*lender),
            _ => None,
        }
    }
}

/// A leader with the devices at hand.
pub(super) struct Writer<'a> {
    lead: Lead<'a>,
    devices: [Option<BorrowedFd<'a>>; 2],
    lent: bool,
    spent: Cell<u64>,
}

impl<'a> Writer<'a> {
    /// # Errors
    /// EBADF if this process cannot reach every copy that is written.
    pub(super) fn new(lead: Lead<'a>, way: &'a Way) -> Result<Self, Errno> {
        let desk = lead.desk();
        // A number of ours may be of a device that another one has taken the place of.
        if way.given().is_some_and(|given| given != desk.given().load(SeqCst)) {
            return Err(Errno::BADF);
        }
        let wanted = written(desk) | joining(desk);
        let devices = [
            if wanted & 1 != 0 { Some(way.device()?) } else { None },
            if wanted & 2 != 0 { Some(way.mirror().ok_or(Errno::BADF)?) } else { None },
        ];
        Ok(Self { lead, devices, lent: way.lender().is_some(), spent: Cell::new(0) })
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
    /// [`REPLACED`] if it was already: nothing was done.
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

    /// True for an error of this process alone: others can write, and what it wrote does not count.
    pub(super) fn is_ours_alone(&self, error: Errno) -> bool {
        self.lent && is_of_the_process(error)
    }

    /// Writes; on the device when this returns success, on each that counts: from when to when it was under way, in
    /// ticks.
    ///
    /// # Errors
    /// EBADF if this process cannot write it, but others can: the descriptor was taken away meanwhile, or a limit or a
    /// filter of its own is in the way. What it wrote does not count. EIO for anything else, and from then on for
    /// everybody: what is on the device at that place is unknown.
    pub(super) fn write(
        &self,
        image: &Region,
        at: usize,
        len: usize,
        position: u64,
    ) -> Result<Range<u64>, Errno> {
        mirror::settle(self, image)?;
        let began = ticks();
        let to = |copy| self.to(copy, image, at, len, position);
        let done = mirror::each(self, image, to).and_then(|()| mirror::join(self, to));
        let ended = ticks();
        self.spent.set(self.spent.get() + ended.wrapping_sub(began));
        done.map(|()| began..ended)
    }

    /// Writes to one copy.
    ///
    /// # Errors
    /// What the kernel said.
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
    // By a number that names something else; RLIMIT_FSIZE; seccomp(2), in either manner; memory to write from.
    matches!(error, Errno::BADF | Errno::FBIG | Errno::PERM | Errno::ACCESS | Errno::NOSYS | Errno::NOMEM)
}

/// Nothing is hardened any more.
pub(super) fn fail(desk: Desk<'_>, error: Errno) -> Errno {
    desk.failed().store(error.raw_os_error() as u32, SeqCst);
    Errno::IO
}
