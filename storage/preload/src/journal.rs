//! The journal of a pool on a block device, or of one that other hosts keep: its descriptors, which are
//! [kept](crate::kept) among the application's, and what is done without them: the daemon leads, and sends them once more.

use core::ffi::c_int;
use core::sync::atomic::{
    AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use rustix::fd::BorrowedFd;
use seawall_core::Errno;
use seawall_core::journal::Lender;
use seawall_wire::message::Retire;

use crate::client::DAEMON;
use crate::kept::{JOURNAL as FIRST, LINKS, MIRROR};
use crate::socket::Descriptors;
use crate::sys;
use crate::{log, owner};

/// How often a full journal is tried again, and after what time: ten seconds in all.
const ROOM_TRIES: u32 = 1000;
const ROOM_PAUSE_NS: u64 = 10_000_000;

/// Which ones these are: the daemon gives others when a lost copy is rebuilt.
static GIVEN: AtomicU32 = AtomicU32::new(0);
/// The process that changes them; 0 for none.
static CHANGER: AtomicU32 = AtomicU32::new(0);

/// How this process reaches the journal.
pub struct Journal;

/// The one there is.
pub static JOURNAL: Journal = Journal;

impl Lender for Journal {
    fn device(&self) -> Option<BorrowedFd<'_>> {
        FIRST.get().filter(|_| may_write()).map(sys::borrow)
    }

    fn mirror(&self) -> Option<BorrowedFd<'_>> {
        MIRROR.get().filter(|_| may_write()).map(sys::borrow)
    }

    fn reaches_keepers(&self) -> bool {
        true
    }

    fn keeper(&self, keeper: usize) -> Option<BorrowedFd<'_>> {
        LINKS.get(keeper)?.get().map(sys::borrow)
    }

    fn given(&self) -> u32 {
        GIVEN.load(Acquire)
    }

    fn harden(&self) -> Result<(), Errno> {
        harden(None)
    }

    fn retire(&self, slot: u32, generation: u32, lsn: u64) -> Result<(), Errno> {
        harden(Some(Retire { slot, generation, lsn }))
    }
}

/// Has the daemon do it, and keeps what it lends once more.
fn harden(retire: Option<Retire>) -> Result<(), Errno> {
    DAEMON.harden(retire, |lent, reply| match reply.keepers {
        0 => keep([lent.get(0), lent.get(1)], reply.given),
        keepers => keep_links(&lent, keepers, reply.given),
    })
}

/// Keeps what the daemon lends: the journal's descriptor, and that of its second copy; instead of those that there are,
/// if they are newer.
pub fn keep([first, second]: [Option<c_int>; 2], given: u32) {
    changing(|| match given.wrapping_sub(GIVEN.load(Relaxed)) as i32 {
        0 => {
            first.into_iter().for_each(|fd| FIRST.keep(fd));
            second.into_iter().for_each(|fd| MIRROR.keep(fd));
        }
        1.. => {
            FIRST.replace(first);
            MIRROR.replace(second);
            // Whoever sees this sees those as well.
            GIVEN.store(given, Release);
        }
        // An answer that was overtaken by a later one.
        _ => {}
    });
}

/// Keeps the connections to these keepers, a bit each, instead of those that there are, unless those are newer.
fn keep_links(lent: &Descriptors, keepers: u32, given: u32) {
    changing(|| {
        let newer = given.wrapping_sub(GIVEN.load(Relaxed)) as i32;
        let mut next = 0;
        for (keeper, link) in LINKS.iter().enumerate() {
            let is_lent = keepers & 1 << keeper != 0;
            let fd = if is_lent { lent.get(next) } else { None };
            next += usize::from(is_lent);
            match newer {
                // One that the application took away is there again.
                0 => fd.into_iter().for_each(|fd| link.keep(fd)),
                1.. => link.replace(fd),
                _ => {}
            }
        }
        if newer > 0 {
            GIVEN.store(given, Release);
        }
    });
}

/// Changes what is kept, unless somebody else does: next time will do. Nobody waits, for it may be a signal handler's thread
/// that is at it. After a fork it may be the parent's.
fn changing(change: impl FnOnce()) {
    let (me, changer) = (sys::getpid(), CHANGER.load(Acquire));
    let is_taken = || CHANGER.compare_exchange(changer, me, AcqRel, Relaxed).is_err();
    if owner::in_vfork_child() || changer == me || is_taken() {
        return;
    }
    change();
    CHANGER.store(0, Release);
}

/// True unless the application may write no file as long as the journal: the kernel would refuse, and send SIGXFSZ.
fn may_write() -> bool {
    sys::limit(libc::RLIMIT_FSIZE) >= FIRST.size().max(MIRROR.size())
}

/// To be called before the kernel makes durable what the log knows nothing of (sync, syncfs, msync, an asynchronous
/// fsync): else a power cut would lead back to older records that are on the journal's device already.
///
/// # Errors
/// As for [`seawall_core::Engine::harden_all`].
pub fn harden_all() -> Result<(), Errno> {
    let Some(engine) = log::joined().filter(|engine| engine.pool().journal().is_some()) else {
        return Ok(());
    };
    let mut done = engine.harden_all();
    for _ in 0..ROOM_TRIES {
        if done != Err(Errno::NOSPC) {
            break;
        }
        engine.wake_daemon();
        sys::nap_ns(ROOM_PAUSE_NS);
        done = engine.harden_all();
    }
    done
}
