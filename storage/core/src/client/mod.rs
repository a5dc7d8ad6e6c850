//! What every front asks the daemon, what each answer means, and what a front does without one. Which files go to the
//! log, and what happens to the others, is decided here, so that the fronts cannot disagree.
//!
//! Input: a [`Transport`], by which the front brings one message to the daemon and one back. Output: a [`Course`] for a
//! file, or the answer to another request.
//!
//! | the daemon | how that is known | what the process does |
//! |---|---|---|
//! | is away | nobody listens | asks again later; what must not go around the log waits for the next one |
//! | is at work | it answers a [ping](Kind::Ping) | waits for the answer |
//! | is stopped (SIGSTOP, a debugger, a frozen cgroup) | it answers nothing, not even a ping | waits half a second for the answer and half a second for the ping, once; then it sends nothing but a short ping now and then, and uses the disk |
//!
//! Not handled here: sockets and descriptors (the front's transport), and what the answer to Hello makes of a process
//! ([`Engine::join`]).

mod answer;
mod due;
mod line;
#[cfg(test)]
mod tests;
mod transport;

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use seawall_wire::message::{Kind, Reply, Request, Retire, Status};
use zerocopy::IntoBytes;

use crate::file::SUSPENDED_AT_MOST;
use crate::patience::Patience;
use crate::{Engine, FileRef};
use line::{Hearing, Line};

pub use answer::{Course, Entered, Registered, Synced};
pub use due::{Due, Use};
pub use transport::{Received, Transport};

/// How long to wait for an answer before a ping, and for the answer to that ping: a second in all.
const PATIENCE_US: u32 = 500_000;
/// How long a daemon that is stopped gets to answer the ping, once a second: an answer takes less than a tenth of
/// that.
const PROBE_US: u32 = 5_000;
/// How long and how often to ask again for a file that is suspended.
const SUSPENDED_NS: u64 = SUSPENDED_AT_MOST.as_nanos() as u64;
const SUSPENDED_PAUSE_NS: u64 = 50_000_000;
/// How often and how soon to ask a daemon that does not answer once more to make the log durable: five seconds in all.
const HARDEN_TRIES: u32 = 50;
const HARDEN_PAUSE_NS: u64 = 100_000_000;

/// How long a program waits that removes a directory with nothing but guards in it, and between two questions.
const LOWER_NS: u64 = 3_000_000_000;
const LOWER_PAUSE_NS: u64 = 20_000_000;

/// How long the answer of a running daemon may take.
const fn limit_ns(kind: Kind) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    match kind {
        // A real sync of files, or of the log, happens behind these.
        Kind::SyncFile | Kind::SyncTree | Kind::Harden | Kind::GoWithout | Kind::LetGo => 120 * SECOND,
        // Under the policy `atomic` it syncs the file, which may have much that the disk lacks.
        Kind::Register | Kind::RegisterNew => 120 * SECOND,
        _ => 10 * SECOND,
    }
}

/// A process's requests to its daemon.
pub struct Client<T> {
    transport: T,
    line: Line,
    patience: Patience,
    /// This process has reported that a data file is outside the log.
    told: AtomicBool,
}

impl<T: Transport> Client<T> {
    /// The client of a process that has not asked anything yet.
    pub const fn new(transport: T) -> Self {
        Self { transport, line: Line::new(), patience: Patience::new(), told: AtomicBool::new(false) }
    }

    /// How messages travel.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// True unless a request failed a moment ago.
    pub fn may_ask(&self) -> bool {
        self.line.may_ask(|| self.transport.now_ns())
    }

    /// Attaches. The answer is for [`Engine::join`].
    ///
    /// # Errors
    /// As for [`Transport::send`] and [`Transport::receive`]; BUSY if the daemon is about to end, and lets no process in. Nothing
    /// is asked again for a second.
    pub fn hello(&self) -> Result<Received<T::Descriptors>, Errno> {
        let answer = self.ask(Kind::Hello, &[], None).and_then(|answer| {
            let comes_too_late = answer::status(&answer.reply) == Status::Later;
            if comes_too_late { Err(Errno::BUSY) } else { Ok(answer) }
        });
        answer.inspect_err(|_| self.unanswered())
    }

    /// Tells the daemon that this process, which it greeted and believes to log its writes and to announce them, will
    /// not do so. False: the daemon has not got the message.
    #[must_use]
    pub fn goes_without(&self) -> bool {
        let answer = self.ask(Kind::GoWithout, &[], None);
        let is_heard = answer.is_ok_and(|answer| answer::is_heard(&answer.reply));
        if !is_heard {
            self.unanswered();
        }
        is_heard
    }

    /// Asks the daemon to manage the file behind `fd`. A file that must not go around the log (`is_atomic`) waits for a
    /// daemon that is away, and for the end of a freeze; if it goes around the log all the same, a message says so.
    pub fn register(&self, engine: &Engine, fd: BorrowedFd<'_>, is_atomic: bool) -> Course {
        let mut registered = self.ask_to_register(engine, fd, is_atomic);
        let begin = self.transport.now_ns();
        while registered == Registered::Suspended
            && self.transport.now_ns().saturating_sub(begin) < SUSPENDED_NS
        {
            self.transport.nap_ns(SUSPENDED_PAUSE_NS);
            registered = self.ask_to_register(engine, fd, is_atomic);
        }
        if registered == Registered::NoAnswer {
            self.unanswered();
        }
        let registered = registered.if_known(|file| engine.knows(file));
        if is_atomic && let Some(why) = registered.torn() {
            self.tell_torn(engine, why);
        }
        registered.course(is_atomic)
    }

    /// Asks the daemon to take the new directory behind `fd` into the log, unsynced, because the log has its name. False: it is
    /// not in the log.
    #[must_use]
    pub fn register_new(&self, fd: BorrowedFd<'_>) -> bool {
        let answer = self.ask_now(Kind::RegisterNew, &[], Some(fd));
        answer.is_some_and(|answer| answer::is_done(&answer.reply))
    }

    fn ask_to_register(&self, engine: &Engine, fd: BorrowedFd<'_>, is_atomic: bool) -> Registered {
        let answer = self.ask_now_or(Kind::Register, Some(fd), is_atomic.then_some(engine));
        answer.map_or(Registered::NoAnswer, |answer| Registered::of(&answer.reply))
    }

    /// Reports that pages of a data file can tear: once, from whichever of a database's processes finds it first.
    #[cold]
    pub fn tell_torn(&self, engine: &Engine, why: &'static str) {
        let is_first = || engine.shm().header().told_torn().swap(1, Relaxed) == 0;
        if !self.told.swap(true, Relaxed) && is_first() {
            self.transport.say(why);
        }
    }

    /// Asks the daemon to serve the file behind `fd` from the block cache. The answer brings the descriptors by which
    /// the cache's blocks are read, if they lie on a disk.
    pub fn enter(&self, fd: BorrowedFd<'_>) -> (Entered, Option<T::Descriptors>) {
        match self.ask_now(Kind::Enter, &[], Some(fd)) {
            Some(answer) => (Entered::of(&answer.reply), Some(answer.descriptors)),
            None => (Entered::NotNow, None),
        }
    }

    /// Asks the daemon to register the targets of a database's new links. False if one of them is not registered.
    #[must_use]
    pub fn look_for_roots(&self, engine: &Engine) -> bool {
        let answer = self.ask_now_or(Kind::LookForRoots, None, Some(engine));
        answer.is_some_and(|answer| answer::is_done(&answer.reply))
    }

    /// Has the daemon raise the guard of a managed file at the name that it is about to get, in `directory`. Without an
    /// answer the guard is raised when the next daemon finds the file there.
    pub fn renaming(&self, file: FileRef, directory: BorrowedFd<'_>, name: &[u8]) {
        let mut body = [0u8; 8 + NAME_MAX];
        body[..8].copy_from_slice(&words(file));
        let Some(room) = body.get_mut(8..8 + name.len()) else { return };
        room.copy_from_slice(name);
        self.ask_now(Kind::Rename, &body[..8 + name.len()], Some(directory));
    }

    /// Has the daemon lower guards in a directory that no longer protect anything. Nothing else is in that directory, so a
    /// daemon that is busy, or that is being replaced, is waited for, three seconds at most: the caller's program would see
    /// that a directory is not empty in which it has nothing. False: nothing was done.
    #[must_use]
    pub fn lower_left(&self, directory: BorrowedFd<'_>) -> bool {
        let end = self.transport.now_ns() + LOWER_NS;
        loop {
            let answer = self.ask_now(Kind::LowerLeft, &[], Some(directory));
            if answer.is_some_and(|answer| answer::is_done(&answer.reply)) {
                return true;
            }
            if self.transport.now_ns() >= end {
                return false;
            }
            self.transport.nap_ns(LOWER_PAUSE_NS);
        }
    }

    /// Has the daemon make everything below a directory durable. False: the caller has to call syncfs(2).
    #[must_use]
    pub fn sync_tree(&self, directory: BorrowedFd<'_>) -> bool {
        let answer = self.ask_now(Kind::SyncTree, &[], Some(directory));
        answer.is_some_and(|answer| answer::is_done(&answer.reply))
    }

    /// Gives up a managed file, because another machine is about to write it. False: it stays in the log, and its guard
    /// stays up.
    #[must_use]
    pub fn let_go(&self, file: FileRef) -> bool {
        let answer = self.ask(Kind::LetGo, &words(file), None);
        answer.is_ok_and(|answer| answer::is_done(&answer.reply))
    }

    /// Has the daemon make a real fdatasync of a managed file.
    #[must_use]
    pub fn sync_file(&self, file: FileRef) -> Synced {
        let answer = self.ask_now(Kind::SyncFile, &words(file), None);
        answer.map_or(Synced::Not, |answer| Synced::of(&answer.reply))
    }

    /// Has the daemon make the log durable, or retire a file's records: this process cannot write the journal. The
    /// answer, whatever it says, brings the journal's descriptors.
    ///
    /// # Errors
    /// NOSPC if the journal is full, otherwise IO: nothing is durable.
    pub fn harden(&self, retire: Option<Retire>, keep: impl Fn(T::Descriptors, &Reply)) -> Result<(), Errno> {
        let body = retire.as_ref().map_or(&[][..], IntoBytes::as_bytes);
        let mut answer = self.ask(Kind::Harden, body, None);
        for _ in 0..HARDEN_TRIES {
            if answer.is_ok() {
                break;
            }
            // A daemon that is replaced by the next one is away for a moment.
            self.transport.nap_ns(HARDEN_PAUSE_NS);
            answer = self.ask(Kind::Harden, body, None);
        }
        let Received { reply, descriptors } = answer.map_err(|_| Errno::IO)?;
        keep(descriptors, &reply);
        answer::hardened(&reply)
    }

    /// Notes that the daemon did not answer.
    fn unanswered(&self) {
        self.line.unanswered(self.transport.now_ns());
    }

    /// Asks, unless the daemon did not answer a moment ago.
    fn ask_now(
        &self,
        kind: Kind,
        body: &[u8],
        fd: Option<BorrowedFd<'_>>,
    ) -> Option<Received<T::Descriptors>> {
        if self.may_ask() { self.ask(kind, body, fd).ok() } else { None }
    }

    /// The same. With an engine, waits for the next daemon.
    fn ask_now_or(
        &self,
        kind: Kind,
        fd: Option<BorrowedFd<'_>>,
        insist: Option<&Engine>,
    ) -> Option<Received<T::Descriptors>> {
        self.ask_now(kind, &[], fd).or_else(|| {
            // A daemon that is stopped is not replaced.
            let engine = insist.filter(|_| !self.line.is_silent())?;
            let nap = |ns| self.transport.nap_ns(ns);
            self.patience.insist(engine, || self.transport.now_ns(), nap, || self.ask(kind, &[], fd).ok())
        })
    }

    /// One request, one reply.
    fn ask(
        &self,
        kind: Kind,
        body: &[u8],
        fd: Option<BorrowedFd<'_>>,
    ) -> Result<Received<T::Descriptors>, Errno> {
        let patience_us = match (self.line.hearing(self.transport.now_ns()), kind) {
            (Hearing::Speaks, _) => PATIENCE_US,
            // Its watchdog may answer this request; the question itself is the probe.
            (_, Kind::Hello) => PROBE_US,
            (Hearing::Silent, _) => return Err(Errno::AGAIN),
            (Hearing::Probe, _) => self.is_there(PROBE_US).map(|()| PATIENCE_US)?,
        };
        let begin = self.transport.now_ns();
        let is_late = || self.transport.now_ns().saturating_sub(begin) >= limit_ns(kind);
        let connection = self.send(kind, body, fd, patience_us)?;
        loop {
            match self.transport.receive(&connection) {
                Err(Errno::AGAIN) if !is_late() => self.is_there(patience_us)?,
                done => return done.inspect(|answer| self.look_at(&answer.reply)),
            }
        }
    }

    fn look_at(&self, reply: &Reply) {
        if answer::status(reply) == Status::Denied {
            self.transport.not_served();
        }
    }

    fn send(
        &self,
        kind: Kind,
        body: &[u8],
        fd: Option<BorrowedFd<'_>>,
        limit_us: u32,
    ) -> Result<T::Connection, Errno> {
        let request = Request::new(kind, body.len() as u32);
        self.transport.send([request.as_bytes(), body], fd, limit_us).inspect_err(|error| match *error {
            Errno::ACCESS | Errno::PERM => self.transport.not_served(),
            // The daemon's queue is full.
            Errno::AGAIN => self.line.heard(false, self.transport.now_ns()),
            _ => {}
        })
    }

    /// Asks a daemon that has not answered whether it is there at all. Any answer shows that it is, except its
    /// watchdog's, which says that it is stopped.
    ///
    /// # Errors
    /// AGAIN if it is stopped, which is remembered; other errors if it is gone.
    #[cold]
    fn is_there(&self, limit_us: u32) -> Result<(), Errno> {
        let answered = self
            .send(Kind::Ping, &[], None, limit_us)
            .and_then(|connection| self.transport.receive(&connection))
            .and_then(|answer| answer::stands(&answer.reply));
        self.line.heard(!matches!(answered, Err(Errno::AGAIN)), self.transport.now_ns());
        answered
    }
}

/// Bytes of a file's name, at most.
const NAME_MAX: usize = 255;

/// A file's slot and generation, as they travel.
fn words(file: FileRef) -> [u8; 8] {
    let mut words = [0; 8];
    words[..4].copy_from_slice(&file.slot.to_le_bytes());
    words[4..].copy_from_slice(&file.generation.to_le_bytes());
    words
}
