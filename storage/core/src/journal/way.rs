//! The way to the journal's device, or to both devices of a mirrored one: a descriptor of this process's own, or one
//! among an application's.
//!
//! A descriptor among an application's may have been closed behind our back, and its number may name something else by
//! now. So it is checked whenever a thread leads; if it is gone, the daemon leads instead.

#[cfg(feature = "std")]
use std::sync::{Arc, OnceLock};

use rustix::fd::{AsFd, BorrowedFd};
use seawall_media::block::Device;
use seawall_wire::keeper::KEEPERS_MAX;

use rustix::io::Errno;

#[cfg(feature = "std")]
use super::copies::Copies;

/// Connections to keepers, in the roster's order.
pub(super) type Links<'a> = [Option<BorrowedFd<'a>>; KEEPERS_MAX];

/// What a front has that cannot rely on its descriptors.
pub trait Lender: Sync {
    /// The journal's device, or for a mirrored journal that of its first copy, if its descriptor is still the right
    /// one.
    fn device(&self) -> Option<BorrowedFd<'_>>;

    /// The device of a mirrored journal's second copy, if its descriptor is still the right one.
    fn mirror(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// True if it has the daemon's connections to keepers once it has asked for them.
    fn reaches_keepers(&self) -> bool {
        false
    }

    /// The connection to a keeper of a log without a device, by the keeper's place in the roster, if its descriptor is
    /// still the right one.
    fn keeper(&self, _keeper: usize) -> Option<BorrowedFd<'_>> {
        None
    }

    /// [`Desk::given`](seawall_wire::desk::Desk::given) when these descriptors were lent.
    fn given(&self) -> u32 {
        0
    }

    /// Has the daemon make everything durable that is in the log now.
    ///
    /// # Errors
    /// As for `Journal::harden`; EIO if the daemon does not do it.
    fn harden(&self) -> Result<(), Errno>;

    /// Has the daemon raise a file's watermark.
    ///
    /// # Errors
    /// EIO if it does not do it.
    fn retire(&self, slot: u32, generation: u32, lsn: u64) -> Result<(), Errno>;
}

/// Descriptors of both copies, and the ones that replaced them.
#[cfg(feature = "std")]
pub struct Pair {
    devices: [Device; 2],
    given: u32,
    newer: OnceLock<Box<Self>>,
}

#[cfg(feature = "std")]
impl Pair {
    /// Those of the first and the second copy, which were the right ones when
    /// [`Desk::given`](seawall_wire::desk::Desk::given) was `given`. If one copy is gone, the other's descriptor stands
    /// in its place, and nothing is written through that number.
    pub fn new(devices: [Device; 2], given: u32) -> Self {
        Self { devices, given, newer: OnceLock::new() }
    }

    fn newest(&self) -> &Self {
        core::iter::successors(Some(self), |pair| Some(&**pair.newer.get()?)).last().unwrap_or(self)
    }

    /// These are used from now on. The former ones stay open: another thread may be about to look at them.
    pub(super) fn replace(&self, by: Self) -> Result<(), Errno> {
        self.newest().newer.set(Box::new(by)).map_err(|_| Errno::BUSY)
    }
}

/// How a process reaches the journal's device.
pub enum Way {
    /// Through a descriptor of its own.
    Own(Device),
    /// Through two of its own: those of both copies, shared by all journals of the pool in this process.
    #[cfg(feature = "std")]
    Mirrored(Arc<Pair>),
    /// There is no device: other hosts keep copies, which this process reaches.
    #[cfg(feature = "std")]
    Kept(Arc<dyn Copies>),
    /// Through one among an application's, or through the daemon.
    Lent(&'static dyn Lender),
}

impl Way {
    /// The descriptor, or for a mirrored journal that of its first copy.
    ///
    /// # Errors
    /// EBADF if it was taken away.
    pub fn device(&self) -> Result<BorrowedFd<'_>, Errno> {
        match self {
            Self::Own(device) => Ok(device.as_fd()),
            #[cfg(feature = "std")]
            Self::Mirrored(pair) => Ok(pair.newest().devices[0].as_fd()),
            #[cfg(feature = "std")]
            Self::Kept(_) => Err(Errno::BADF),
            Self::Lent(lender) => lender.device().ok_or(Errno::BADF),
        }
    }

    /// The descriptor of a mirrored journal's second copy.
    pub fn mirror(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Own(_) => None,
            #[cfg(feature = "std")]
            Self::Mirrored(pair) => Some(pair.newest().devices[1].as_fd()),
            #[cfg(feature = "std")]
            Self::Kept(_) => None,
            Self::Lent(lender) => lender.mirror(),
        }
    }

    /// [`Desk::given`](seawall_wire::desk::Desk::given) when its descriptors were the right ones; `None` if they cannot
    /// be replaced.
    pub(super) fn given(&self) -> Option<u32> {
        match self {
            Self::Own(_) => None,
            #[cfg(feature = "std")]
            Self::Mirrored(pair) => Some(pair.newest().given),
            #[cfg(feature = "std")]
            Self::Kept(_) => None,
            Self::Lent(lender) => Some(lender.given()),
        }
    }

    /// What a daemon lends: its own descriptors, for a mirrored journal those of both copies, and the
    /// [`Desk::given`](seawall_wire::desk::Desk::given) that they belong to.
    #[cfg(feature = "std")]
    pub fn lend(&self) -> (u32, Vec<BorrowedFd<'_>>) {
        match self {
            Self::Own(device) => (0, vec![device.as_fd()]),
            Self::Mirrored(pair) => {
                let newest = pair.newest();
                (newest.given, newest.devices.iter().map(AsFd::as_fd).collect())
            }
            Self::Kept(_) | Self::Lent(_) => (0, Vec::new()),
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
            Self::Kept(copies) => Self::Kept(Arc::clone(copies)),
            Self::Lent(lender) => Self::Lent(*lender),
        })
    }

    /// The party that keeps copies on other hosts.
    #[cfg(feature = "std")]
    pub(super) fn copies(&self) -> Option<&dyn Copies> {
        match self {
            Self::Kept(copies) => Some(&**copies),
            _ => None,
        }
    }

    /// The lender that leads where this process cannot.
    pub(super) fn lender(&self) -> Option<&'static dyn Lender> {
        match self {
            Self::Lent(lender) => Some(*lender),
            _ => None,
        }
    }
}
