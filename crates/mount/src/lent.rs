//! The devices of a mirrored log, as the daemon lends them: when a lost copy is rebuilt it lends others, and leads until
//! these are here.
//!
//! Not handled here: a log on one device, whose descriptor is this process's own for good.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use seawall_core::Errno;
use seawall_core::journal::{Lender, Way};
use seawall_wire::message::{Kind, MAGIC, Retire, Status};
use zerocopy::IntoBytes;

use crate::client::Client;

/// How long one answer may take: the daemon writes to a device meanwhile.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often a daemon that does not answer is asked once more, and after what time: five seconds in all.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// The devices of both copies, and which ones these are.
struct Devices {
    of: [OwnedFd; 2],
    given: u32,
}

struct Lent {
    client: Client,
    /// Never given up: somebody may write by them. A rebuild is rare.
    now: Mutex<&'static Devices>,
}

/// The way to the journal by these.
pub fn way(client: Client, of: [OwnedFd; 2], given: u32) -> Way {
    let now = Mutex::new(&*Box::leak(Box::new(Devices { of, given })));
    Way::Lent(Box::leak(Box::new(Lent { client, now })))
}

impl Lent {
    fn now(&self) -> MutexGuard<'_, &'static Devices> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn ask(&self, body: &[u8]) -> Result<(), Errno> {
        let ask = || self.client.ask(Kind::Harden, body, None, PATIENCE);
        let mut answer = ask();
        for _ in 0..TRIES {
            if answer.is_ok() {
                break;
            }
            // A daemon that is replaced by the next one is away for a moment.
            sleep(PAUSE);
            answer = ask();
        }
        let (reply, descriptors) = answer.map_err(|_| Errno::IO)?;
        self.take(descriptors, reply.given);
        match (reply.magic, Status::from_u32(reply.status)) {
            (MAGIC, Status::Ok) => Ok(()),
            (MAGIC, Status::Full) => Err(Errno::NOSPC),
            _ => Err(Errno::IO),
        }
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
        self.ask(&[])
    }

    fn retire(&self, slot: u32, generation: u32, lsn: u64) -> Result<(), Errno> {
        self.ask(Retire { slot, generation, lsn }.as_bytes())
    }
}
