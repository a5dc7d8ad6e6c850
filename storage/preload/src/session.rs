//! This process's connection to the log: made at first need, at most once, never taken back. On top of what it takes for
//! that: the daemon's answer, the journal's descriptors, the block cache's zone.
//!
//! Lock-free, because the first need may arise in a signal handler or in two threads at once: each attempt
//! builds an engine of its own, one is published, the others are dropped.

use core::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::SeqCst, fence};

use seawall_core::journal::Way;
use seawall_core::{Engine, JoinError};
use seawall_wire::message::Reply;

use crate::cached::pin;
use crate::cached::zone;
use crate::client::DAEMON;
use crate::environment::{self, SOCKET_PATH_MAX};
use crate::socket::Descriptors;
use crate::sys::{self, unsafe_call};
use crate::{journal, log};

pub use crate::log::{is_off, joined};

/// What the program before an exec may have left locked was looked for.
static BURIED: AtomicBool = AtomicBool::new(false);

/// Why there is no engine.
#[derive(Debug)]
enum Failure {
    /// SEAWALL_SOCKET is not set.
    NoSocket,
    /// The daemon is not there, or did not answer in time.
    NoAnswer,
    /// It answered no, or its answer made no sense.
    Refused(&'static str),
}

/// The engine, joining the log if need be.
#[inline]
pub fn engine() -> Option<&'static Engine> {
    joined().or_else(|| if is_off() { None } else { join() })
}

/// To be called by our constructor: without a socket there is nothing to do in this process, ever.
pub fn start() {
    if !has_socket() {
        turn_off();
    }
}

fn has_socket() -> bool {
    let mut room = [0; SOCKET_PATH_MAX];
    environment::socket(&mut room).is_some()
}

/// Everything passes through from now on. True if it did before.
fn turn_off() -> bool {
    zone::none();
    log::turn_off()
}

#[cold]
fn join() -> Option<&'static Engine> {
    if !DAEMON.may_ask() {
        return log::miss();
    }
    match hello() {
        Ok(engine) => publish(engine),
        Err(Failure::NoSocket) => {
            turn_off();
            None
        }
        Err(Failure::Refused(why)) => {
            if !turn_off() {
                sys::say(&["not active in this process: ", why]);
            }
            None
        }
        Err(Failure::NoAnswer) => {
            if !log::missed() {
                sys::say(&["the daemon does not answer; this process uses the disk until it does"]);
            }
            log::miss()
        }
    }
}

/// Attaches: maps pool and run-time memory.
fn hello() -> Result<Engine, Failure> {
    if !has_socket() {
        return Err(Failure::NoSocket);
    }
    let answer = DAEMON.hello().map_err(|_| Failure::NoAnswer)?;
    let (reply, lent) = (&answer.reply, &answer.descriptors);
    let zone = lent.zone(reply);
    let of_journal = |i: usize| lent.get(i).filter(|_| zone != Some(i));
    journal::keep([of_journal(2), of_journal(3)], reply.given);
    let way = Way::Lent(&journal::JOURNAL);
    let engine = Engine::join(reply, lent.get(0).map(sys::borrow), lent.get(1).map(sys::borrow), Some(way));
    let is_cached = engine.is_ok() && join_cache(reply, lent);
    drop(answer);
    match engine {
        Err(e @ (JoinError::OtherVersion | JoinError::Denied)) => Err(Failure::Refused(e.text())),
        Err(e) => Err(without(e.text())),
        // It would be believed to announce its writes.
        Ok(_) if !is_cached => Err(without("its block cache cannot be mapped")),
        Ok(engine) => Ok(engine),
    }
}

/// Joins the zone of the block cache, if there is one.
fn join_cache(reply: &Reply, lent: &Descriptors) -> bool {
    match lent.zone(reply).and_then(|i| lent.get(i)) {
        Some(fd) => zone::join(sys::borrow(fd), reply.cache_len),
        None => {
            zone::none();
            reply.cache_len == 0
        }
    }
}

/// This process has been greeted, and is believed to log its writes and to announce them: this tells the daemon that it
/// will not. If the daemon does not hear, it is asked for everything anew, later.
#[cold]
fn without(why: &'static str) -> Failure {
    if DAEMON.goes_without() { Failure::Refused(why) } else { Failure::NoAnswer }
}

/// Moves the engine into a page of its own and publishes it, unless another thread was quicker.
fn publish(engine: Engine) -> Option<&'static Engine> {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let size = size_of::<Engine>();
    let at = unsafe_call!(SYS_mmap, 0, size, prot, flags, -1isize, 0).ok()? as *mut Engine;
    if !BURIED.swap(true, AcqRel)
        && let Some(journal) = engine.pool().journal()
    {
        journal.bury_former_self(engine.pool(), || joined().is_none());
    }
    // SAFETY: fresh memory of the right size, aligned to a page, ours alone until published.
    unsafe { at.write(engine) };
    pin_what_is_missed();
    // SAFETY: once published it stays where it is, for the life of the process.
    if !unsafe { log::publish(at) } {
        // SAFETY: written above and not published.
        unsafe { at.drop_in_place() };
        let _ = unsafe_call!(SYS_munmap, at, size);
    }
    pin_what_is_missed();
    joined()
}

/// Writes that began while nobody answered may be under way, through whatever is open: the block cache must not serve
/// these files. Before the log counts this process among those that announce their writes, and once more for a thread that
/// missed that.
fn pin_what_is_missed() {
    fence(SeqCst);
    if log::missed() {
        pin::pin_open();
    }
}
