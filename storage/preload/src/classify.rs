//! What is this descriptor? Asked by every hook; answered from the table, or found out at first use. Then a file without a
//! slot is registered with the daemon, if its preset says so.
//!
//! Inputs: a number and what it is about to be used for. Output: [`Kind`]. Invariant: a write through a
//! descriptor goes to the kernel unlogged only if its file has no slot before *and after* the write, or the
//! file's next fsync is made real; or the file was made here, and nobody has synced it yet ([`unsynced`]).

mod managed;

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use seawall_core::client::{Course, Use};
use seawall_core::file::Flag;
use seawall_core::policy::{self, Manage, SQLITE_MAGIC};
use seawall_core::{Engine, Errno, FileRef, Owner};

use crate::client::DAEMON;
use crate::fdtable::{self, FdEntry, State, mark};
use crate::sys::{self, Stat, unsafe_call};
use crate::{again, cached, log, named, owner, session, unseen, unsynced};

/// This process holds a file until it ends.
static HELD_FOR_LIFE: AtomicBool = AtomicBool::new(false);

/// A descriptor of a managed file, and everything that an engine's call wants to know.
pub struct Target {
    /// The log.
    pub engine: &'static Engine,
    /// The calling thread.
    pub who: Owner,
    /// The file.
    pub file: FileRef,
    /// What the table says.
    pub entry: FdEntry,
}

/// A descriptor that goes to the kernel, but not without a second thought.
pub struct Watched {
    /// What the table says.
    pub entry: FdEntry,
    /// A candidate's log and identity.
    candidate: Option<(&'static Engine, Stat)>,
}

impl Watched {
    /// What a candidate was when it was looked at just now.
    pub fn stat(&self) -> Option<Stat> {
        self.candidate.map(|(_, stat)| stat)
    }

    /// False if nobody has synced the file behind `fd` yet, as far as this process knows.
    pub fn was_synced(&self, fd: c_int) -> bool {
        let Some((_, stat)) = &self.candidate else { return true };
        self.entry.count() > 0 || again::Mark::of(fd, stat).was_synced()
    }
}

/// What a descriptor is.
pub enum Kind {
    /// The kernel's business alone.
    Kernel,
    /// A managed file.
    Managed(Target),
    /// A candidate, or a file that is not managed although flags were taken off its descriptor.
    Watched(Watched),
    /// A managed file, but this process has no identity in the log (4096 processes are there already): it may not write.
    Nobody,
}

/// What the descriptor is about to be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// A change that we see.
    Write,
    /// An fsync.
    Sync,
    /// Changes that we shall not see: a candidate must be registered now, so that it can be held.
    Hold,
    /// Nothing that registers a file: only whether it is in the log already.
    Ask,
}

/// What `fd` is: the table knows it, or it is found out now, and a file whose preset says so is registered.
#[inline]
pub fn look_up_or_register(fd: c_int, intent: Intent) -> Kind {
    if session::is_off() {
        return Kind::Kernel;
    }
    let entry = fdtable::get(fd);
    match entry.state() {
        State::Unmanaged if !entry.has(mark::STRIPPED) => Kind::Kernel,
        State::Managed => match target(entry) {
            Some(target) => Kind::Managed(target),
            None => find_out_or_register(fd, intent, entry),
        },
        _ => find_out_or_register(fd, intent, entry),
    }
}

/// `fd` was opened: what a process that died was writing to its file is whole before anybody reads it there. The daemon may be waited
/// for, so nothing of the log is held.
pub fn opened(fd: c_int) {
    if fd >= 0
        && let Some(engine) = session::joined().filter(|_| !session::is_off())
        && let Some(file) = sys::fstat(fd).ok().and_then(|stat| find(engine, &stat))
    {
        engine.opens(file, || owner::current(engine));
    }
}

/// True if every use of `fd` that changes something is the kernel's business alone, also the block cache's.
/// What the table does not know is found out as [`look_up_or_register`] does it.
#[inline]
pub fn is_left_alone(fd: c_int) -> bool {
    if session::is_off() {
        return true;
    }
    let entry = fdtable::get(fd);
    let is_the_kernels = match entry.state() {
        State::Managed | State::Candidate => false,
        State::Unmanaged => !entry.has(mark::STRIPPED),
        // One that was made here is looked up when its right has ended.
        State::Unknown if entry.right().is_some() => false,
        State::Unknown => matches!(look_up_or_register(fd, Intent::Write), Kind::Kernel),
    };
    is_the_kernels && cached::is_other(fd)
}

#[inline]
fn target(entry: FdEntry) -> Option<Target> {
    let engine = session::joined().filter(|engine| engine.knows(entry.file()))?;
    Some(Target { engine, who: owner::current(engine)?, file: entry.file(), entry })
}

/// The file of a path or descriptor that was looked at.
pub fn find(engine: &Engine, stat: &Stat) -> Option<FileRef> {
    engine.find(stat.dev, stat.ino)
}

#[cold]
fn find_out_or_register(fd: c_int, intent: Intent, entry: FdEntry) -> Kind {
    let Ok(stat) = sys::fstat(fd) else { return Kind::Kernel };
    if !stat.regular {
        fdtable::set(fd, FdEntry::other(State::Unmanaged, 0));
        return Kind::Kernel;
    }
    let Some(engine) = session::engine() else { return Kind::Kernel };
    let inherited = entry == FdEntry::UNKNOWN;
    let Some(entry) = (if inherited { fdtable::opened_as(fd) } else { Some(entry) }) else {
        fdtable::set(fd, FdEntry::other(State::Unmanaged, 0));
        return Kind::Kernel;
    };
    if let Some(file) = find(engine, &stat) {
        let dsync = inherited && engine.state(file).has(Flag::DSYNC);
        return adopt(engine, fd, file, &stat, if dsync { entry.with(mark::DSYNC, true) } else { entry });
    }
    if intent == Intent::Ask {
        return Kind::Kernel;
    }
    if (intent == Intent::Hold || intent == Intent::Write && entry.state() == State::Unknown)
        && named::settle(fd, &stat, None).is_err()
    {
        sys::say(&["could not sync a file whose whole content is in the log, before it is changed unseen"]);
    }
    if entry.state() == State::Unmanaged {
        return Kind::Watched(Watched { entry, candidate: None });
    }
    if entry.state() == State::Candidate && intent == Intent::Write {
        // What its name says decides at a sync alone.
        return candidate(engine, fd, &stat, entry);
    }
    register_if_due(engine, fd, &stat, intent, entry)
}

/// A file that has no slot: its preset says whether the daemon is to register it, and from when on.
fn register_if_due(engine: &'static Engine, fd: c_int, stat: &Stat, intent: Intent, entry: FdEntry) -> Kind {
    let mut room = [0; libc::PATH_MAX as usize];
    let named = (stat.links > 0).then(|| sys::name_of(fd, &mut room)).flatten();
    let Some((root, manage)) = named.and_then(|path| policy::decide(engine.shm(), path)) else {
        return leave(fd, entry);
    };
    if manage == Manage::Bypass {
        return leave(fd, entry);
    }
    if !entry.has(mark::WRITABLE) {
        // Not remembered: a writer may register it at any time.
        return Kind::Kernel;
    }
    let is_small_and_new = entry.right().is_some() && stat.size <= engine.content_most();
    if manage == Manage::Now && intent == Intent::Sync && entry.state() == State::Unknown && !is_small_and_new
    {
        // PostgreSQL's crash recovery syncs every file, and writes few: nothing is in the log yet, so the sync is real.
        // Not remembered: its first write registers it. One that was written and refused is asked for again.
        return Kind::Kernel;
    }
    let at = match intent {
        Intent::Sync => Use::Sync,
        _ if entry.has(mark::DSYNC) => Use::SyncedWrites,
        _ => Use::Change,
    };
    let before = match (manage, at, entry.count()) {
        (Manage::Again, Use::Sync, 0) => u8::from(again::Mark::of(fd, stat).set()),
        (.., count) => count,
    };
    let due = manage.due(at, before, || has_magic(fd));
    if !due.is_now && intent != Intent::Hold {
        return candidate(engine, fd, stat, entry.counted(due.count));
    }
    let is_atomic = policy::is_atomic(engine.shm(), (root, manage));
    match DAEMON.register(engine, sys::borrow(fd), is_atomic) {
        Course::Log(file) => adopt(engine, fd, file, stat, entry),
        Course::Leave => leave(fd, entry),
        Course::AskAgain => candidate(engine, fd, stat, entry.counted(due.count)),
        course @ (Course::AskNext | Course::Unanswered) => {
            if course == Course::Unanswered {
                log::miss();
            }
            Kind::Watched(Watched { entry, candidate: Some((engine, *stat)) })
        }
    }
}

/// Remembers that `fd` may become managed: by us at an fsync, or by another process at any time.
fn candidate(engine: &'static Engine, fd: c_int, stat: &Stat, entry: FdEntry) -> Kind {
    let candidate = entry.as_candidate();
    fdtable::set(fd, candidate);
    Kind::Watched(Watched { entry: candidate, candidate: Some((engine, *stat)) })
}

/// Remembers that `fd` is not managed. Flags that were taken off are made up for.
fn leave(fd: c_int, entry: FdEntry) -> Kind {
    let entry = FdEntry::other(State::Unmanaged, entry.marks());
    fdtable::set(fd, entry);
    match entry.has(mark::STRIPPED) {
        true => Kind::Watched(Watched { entry, candidate: None }),
        false => Kind::Kernel,
    }
}

/// Remembers that `fd` is `file`.
fn adopt(engine: &'static Engine, fd: c_int, file: FileRef, stat: &Stat, was: FdEntry) -> Kind {
    if was.state() == State::Candidate || log::missed() {
        // This process may have written it unseen.
        engine.disturb(file);
    }
    // The kernel's own O_DSYNC makes the published data durable, not the record of it.
    let was = if engine.pool().journal().is_some() { also_synced(fd, was) } else { was };
    // A mark that this file is held tells of an earlier slot, or of a time when it had none.
    let entry = FdEntry::managed(file, was.marks()).with(mark::HELD, false);
    let Some(who) = owner::current(engine) else {
        sys::say(&["too many processes use the log: this one cannot use a managed file"]);
        return Kind::Nobody;
    };
    fdtable::set(fd, entry);
    let target = Target { engine, who, file, entry };
    if was.has(mark::HELD) || unseen::may_be_any() || unseen::is_noted(stat) {
        target.hold_for_life(fd);
    }
    Kind::Managed(target)
}

/// The entry of a descriptor that kept O_DSYNC or O_SYNC: its writes are syncs of the log as well.
fn also_synced(fd: c_int, entry: FdEntry) -> FdEntry {
    let flags = sys::flags(fd).unwrap_or(0);
    let entry = entry.with(mark::DSYNC, entry.has(mark::DSYNC) || flags & libc::O_DSYNC != 0);
    entry.with(mark::SYNC, entry.has(mark::SYNC) || flags & libc::O_SYNC == libc::O_SYNC)
}

/// True for an SQLite database.
pub fn has_magic(fd: c_int) -> bool {
    let mut head = [0u8; SQLITE_MAGIC.len()];
    unsafe_call!(SYS_pread64, fd, head.as_mut_ptr(), head.len(), 0) == Ok(head.len()) && head == SQLITE_MAGIC
}

impl Watched {
    /// To be called after a change that went to the kernel: if the file was registered meanwhile, its next
    /// fsync is real.
    pub fn written(&self) {
        if let Some((engine, stat)) = &self.candidate
            && let Some(file) = find(engine, stat)
        {
            engine.disturb(file);
        }
    }
}

/// A change of `fd` that the log has no record for (fallocate, sendfile, splice…).
pub fn pass(fd: c_int, op: impl FnOnce() -> Result<usize, Errno>) -> Result<usize, Errno> {
    cached::change(fd, || pass_by(fd, op))
}

fn pass_by(fd: c_int, op: impl FnOnce() -> Result<usize, Errno>) -> Result<usize, Errno> {
    if let Some(around) = unsynced::around(fd) {
        return unsynced::change(fd, around, op);
    }
    match look_up_or_register(fd, Intent::Write) {
        Kind::Managed(target) if target.writable() => target.pass(fd, op),
        Kind::Managed(_) | Kind::Kernel => op(),
        Kind::Watched(watched) => {
            let done = op();
            watched.written();
            done
        }
        Kind::Nobody => Err(Errno::IO),
    }
}

/// Keeps the file behind `fd` out of the log until the process ends, if it is managed and can be written; and out of the
/// block cache, managed or not.
pub fn hold_for_life(fd: c_int) {
    cached::unseen(fd);
    if let Kind::Managed(target) = look_up_or_register(fd, Intent::Hold) {
        target.hold_for_life(fd);
    }
}

/// In a forked child: what its parent held for life is held in the child's own name.
pub fn hold_again() {
    if HELD_FOR_LIFE.load(Relaxed) {
        fdtable::marked(mark::HELD).for_each(|(fd, entry)| {
            fdtable::set(fd, entry.with(mark::HELD, false));
            hold_for_life(fd);
        });
    }
}

/// The next fsync of the file behind `fd` is real.
pub fn disturb(fd: c_int) {
    if let Kind::Managed(target) = look_up_or_register(fd, Intent::Write) {
        target.engine.disturb(target.file);
    }
}
