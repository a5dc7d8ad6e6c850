//! The devices of a mirrored log, as the daemon lends them: when a lost copy is rebuilt it lends others, and leads until
//! these are here.
//!
//! A log that keepers keep has no device at all, and of its connections this process borrows none: the daemon leads. Not handled here: a log on one device, whose descriptor is
//! this process's own for good.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard};

use seawall_core::Errno;
use seawall_core::journal::{Lender, Way};
use seawall_media::locks::lock;
use seawall_wire::message::Retire;

use crate::client::Daemon;

/// The devices of both copies, and which ones these are.
struct Devices {
    of: [OwnedFd; 2],
    given: u32,
}

struct Lent {
    daemon: &'static Daemon,
    /// Never given up: somebody may write by them. A rebuild is rare.
    now: Mutex<&'static Devices>,
}

/// The way to the journal by these.
pub fn way(daemon: &'static Daemon, of: [OwnedFd; 2], given: u32) -> Way {
    let now = Mutex::new(&*Box::leak(Box::new(Devices { of, given })));
    Way::Lent(Box::leak(Box::new(Lent { daemon, now })))
}

/// Where only the daemon reaches whoever keeps the log.
struct ByDaemon(&'static Daemon);

/// The way to a log of which this process reaches nothing.
pub fn by_daemon(daemon: &'static Daemon) -> Way {
    Way::Lent(Box::leak(Box::new(ByDaemon(daemon))))
}

impl Lender for ByDaemon {
    fn device(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn harden(&self) -> Result<(), Errno> {
        self.0.harden(None, |_, _| ())
    }

    fn retire(&self, slot: u32, generation: u32, lsn: u64) -> Result<(), Errno> {
        self.0.harden(Some(Retire { slot, generation, lsn }), |_, _| ())
    }
}

impl Lent {
    fn now(&self) -> MutexGuard<'_, &'static Devices> {
        lock(&self.now)
    }

    /// Takes what an answer brought, unless another one brought newer ones.
    fn take(&self, of: Vec<OwnedFd>, given: u32) {
        let mut now = self.now();
        if let Ok(of) = <[OwnedFd; 2]>::try_from(of)
            && given.wrapping_sub(now.given) as i32 > 0
        {
            *now = Box::leak(Box::new(Devices { of, given }));
        }
    }

    fn ask(&self, retire: Option<Retire>) -> Result<(), Errno> {
        self.daemon.harden(retire, |of, reply| self.take(of, reply.given))
    }
}

impl Lender for Lent {
    fn device(&self) -> Option<BorrowedFd<'_>> {
        let now: &'static Devices = *self.now();
        Some(now.of[0].as_fd())
    }

    fn mirror(&self) -> Option<BorrowedFd<'_>> {
        let now: &'static Devices = *self.now();
        Some(now.of[1].as_fd())
    }

    fn given(&self) -> u32 {
        self.now().given
    }

    fn harden(&self) -> Result<(), Errno> {
        self.ask(None)
    }

    fn retire(&self, slot: u32, generation: u32, lsn: u64) -> Result<(), Errno> {
        self.ask(Some(Retire { slot, generation, lsn }))
    }
}
