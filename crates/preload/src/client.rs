//! Requests to the daemon: one connection each, so that no descriptor of ours stays among the application's.
//!
//! | the daemon | how that is known | what the process does |
//! |---|---|---|
//! | is away | nobody listens | asks again later; what must not go around the log waits for the next one |
//! | is at work | it answers a [ping](Kind::Ping) | waits for the answer |
//! | stands still (SIGSTOP, a debugger, a frozen cgroup) | it answers nothing, a ping neither | waits half a second for the answer and half a second for the ping, once; then it asks nothing but a short ping now and then, and uses the disk |

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use seawall_cache::front::word::Answer;
use seawall_core::journal::Way;
use seawall_core::patience::Patience;
use seawall_core::{Engine, Errno, FileRef, JoinError};
use seawall_wire::message::{Kind, MAGIC, Reply, Request, Retire, Status};
use zerocopy::{FromZeros, IntoBytes};

use crate::environment::{self, SOCKET_PATH_MAX};
use crate::session::Hearing;
use crate::socket::{Connection, Received};
use crate::{cached, journal, session, sys};

/// Why there is no engine.
#[derive(Debug)]
pub enum Failure {
    /// SEAWALL_SOCKET is not set.
    NoSocket,
    /// The daemon is not there, or did not answer in time.
    NoAnswer,
    /// It answered no, or its answer made no sense.
    Refused(&'static str),
}

/// What became of a registration.
pub enum Registered {
    /// The file is managed now.
    File(FileRef),
    /// It is not to be managed.
    No,
    /// It cannot be managed now; another process may get another answer later.
    Refused,
    /// Not now: its next sync asks again.
    Later,
    /// The daemon did not answer.
    NoAnswer,
}

const HELLO_SECONDS: i64 = 10;
const REGISTER_SECONDS: i64 = 5;
/// A real fdatasync happens behind this one.
const SYNC_SECONDS: i64 = 120;
/// Until a daemon that has not answered is pinged, and until it has not answered that: a second in all.
const PATIENCE_US: i64 = 500_000;
/// How long one that stands still is given, once a second: an answer takes less than a tenth of that.
const PROBE_US: i64 = 5_000;
/// How often a daemon that does not answer is asked once more to make the log durable, and after what time: five
/// seconds in all.
const HARDEN_TRIES: u32 = 50;
const HARDEN_PAUSE_NS: u64 = 100_000_000;

/// Attaches: maps pool and run-time memory.
pub fn hello() -> Result<Engine, Failure> {
    let mut room = [0; SOCKET_PATH_MAX];
    environment::socket(&mut room).ok_or(Failure::NoSocket)?;
    let answer = ask(Kind::Hello, &[], None, HELLO_SECONDS).map_err(|_| Failure::NoAnswer)?;
    let [pool, shm, ..] = answer.descriptors;
    let zone = answer.zone();
    let of_journal = |i: usize| answer.descriptors[i].filter(|_| zone != Some(i));
    journal::keep([of_journal(2), of_journal(3)], answer.reply.given);
    let way = Way::Lent(&journal::JOURNAL);
    let engine = Engine::join(&answer.reply, pool.map(sys::borrow), shm.map(sys::borrow), Some(way));
    let is_cached = engine.is_ok() && join_cache(&answer, zone);
    answer.close_descriptors();
    match engine {
        Err(e @ (JoinError::OtherVersion | JoinError::Denied)) => Err(Failure::Refused(e.text())),
        Err(e) => Err(without(e.text())),
        // It would be believed to announce its writes.
        Ok(_) if !is_cached => Err(without("its block cache cannot be mapped")),
        Ok(engine) => Ok(engine),
    }
}

/// This process has been greeted, and is believed to log its writes and to announce them: the daemon is told that it will
/// not. Without an answer it is asked for everything anew, later.
#[cold]
fn without(why: &'static str) -> Failure {
    match ask(Kind::GoWithout, &[], None, SYNC_SECONDS) {
        Ok(answer) => {
            answer.close_descriptors();
            Failure::Refused(why)
        }
        Err(_) => Failure::NoAnswer,
    }
}

/// Joins the zone of the block cache, if there is one.
fn join_cache(answer: &Received, zone: Option<usize>) -> bool {
    match zone.and_then(|i| answer.descriptors[i]) {
        Some(fd) => cached::join(sys::borrow(fd), answer.reply.cache_len),
        None => {
            cached::none();
            answer.reply.cache_len == 0
        }
    }
}

/// Asks that the file behind `fd` be served from the block cache.
pub fn enter(fd: c_int) -> Answer {
    let answer =
        if session::may_ask() { ask(Kind::Enter, &[], Some(fd), REGISTER_SECONDS).ok() } else { None };
    let Some(answer) = answer else { return Answer::NotNow };
    answer.descriptors[0].into_iter().for_each(|fd| cached::KEPT.keep(fd));
    answer.close_descriptors();
    match (answer.reply.magic, Status::from_u32(answer.reply.status)) {
        (MAGIC, Status::Ok) => Answer::File(seawall_cache::shared::FileRef {
            slot: answer.reply.slot,
            tenant: answer.reply.generation as u16,
        }),
        (MAGIC, Status::Refused) => Answer::NotNow,
        _ => Answer::Never,
    }
}

/// Asks that the file behind `fd` be managed. With an engine: insists on an answer.
pub fn register(fd: c_int, insist: Option<&Engine>) -> Registered {
    let Some(answer) = ask_or_insist(Kind::Register, Some(fd), insist) else {
        session::unanswered();
        return Registered::NoAnswer;
    };
    answer.close_descriptors();
    match (answer.reply.magic, Status::from_u32(answer.reply.status)) {
        (MAGIC, Status::Ok) => {
            Registered::File(FileRef { slot: answer.reply.slot, generation: answer.reply.generation })
        }
        (MAGIC, Status::Refused) => Registered::Refused,
        (MAGIC, Status::Later) => Registered::Later,
        _ => Registered::No,
    }
}

/// Waiting for daemons that are away.
static PATIENCE: Patience = Patience::new();

/// Asks, unless the daemon did not answer a moment ago. With an engine: waits for the next daemon.
fn ask_or_insist(kind: Kind, fd: Option<c_int>, insist: Option<&Engine>) -> Option<Received> {
    let ask = || ask(kind, &[], fd, REGISTER_SECONDS).ok();
    let clock = || sys::now_ns(libc::CLOCK_MONOTONIC);
    let answer = if session::may_ask() { ask() } else { None };
    // One that stands still is replaced by none.
    answer.or_else(|| PATIENCE.insist(insist.filter(|_| !session::is_silent())?, clock, sys::nap_ns, ask))
}

/// Asks the daemon to register what a database's new links lead to. False if something is not.
pub fn look_for_roots(engine: &Engine) -> bool {
    let Some(answer) = ask_or_insist(Kind::LookForRoots, None, Some(engine)) else { return false };
    answer.close_descriptors();
    (answer.reply.magic, Status::from_u32(answer.reply.status)) == (MAGIC, Status::Ok)
}

/// Has the guard of a managed file raised at the name that it is about to get, in the directory `fd`. Without an answer it
/// is raised when the next daemon finds the file there.
pub fn renaming(file: FileRef, fd: c_int, name: &[u8]) {
    let mut body = [0u8; 8 + libc::NAME_MAX as usize];
    body[..4].copy_from_slice(&file.slot.to_le_bytes());
    body[4..8].copy_from_slice(&file.generation.to_le_bytes());
    let Some(room) = body.get_mut(8..8 + name.len()) else { return };
    room.copy_from_slice(name);
    if session::may_ask()
        && let Ok(answer) = ask(Kind::Rename, &body[..8 + name.len()], Some(fd), REGISTER_SECONDS)
    {
        answer.close_descriptors();
    }
}

/// Has guards in the directory `fd` lowered that protect nothing any more. False: nothing was done.
pub fn lower_left(fd: c_int) -> bool {
    let answer =
        if session::may_ask() { ask(Kind::LowerLeft, &[], Some(fd), REGISTER_SECONDS).ok() } else { None };
    let Some(answer) = answer else { return false };
    answer.close_descriptors();
    (answer.reply.magic, Status::from_u32(answer.reply.status)) == (MAGIC, Status::Ok)
}

/// A real fdatasync of a managed file of which we have no descriptor. Without a daemon, of everything: we
/// must not open and close such a file ourselves, or the process would lose its POSIX locks on it.
pub fn sync_file(file: FileRef) -> Result<(), Errno> {
    let mut body = [0u8; 8];
    body[..4].copy_from_slice(&file.slot.to_le_bytes());
    body[4..].copy_from_slice(&file.generation.to_le_bytes());
    let answer =
        if session::may_ask() { ask(Kind::SyncFile, &body, None, SYNC_SECONDS) } else { Err(Errno::AGAIN) };
    let Ok(answer) = answer else {
        return sys::raw!(SYS_sync).map(drop);
    };
    answer.close_descriptors();
    match (answer.reply.magic, Status::from_u32(answer.reply.status)) {
        (MAGIC, Status::Ok) => Ok(()),
        (MAGIC, Status::Failed) => Err(Errno::IO),
        _ => sys::raw!(SYS_sync).map(drop),
    }
}

/// Has the daemon make durable what is in the log, or retire a file's records up to an LSN: this process lost the
/// journal's descriptor, and gets it back with the answer. Without an answer nothing is durable.
pub fn harden(retire: Option<(u32, u32, u64)>) -> Result<(), Errno> {
    let body = retire.map(|(slot, generation, lsn)| Retire { slot, generation, lsn });
    let body = body.as_ref().map_or(&[][..], |body| body.as_bytes());
    let mut answer = ask(Kind::Harden, body, None, SYNC_SECONDS);
    for _ in 0..HARDEN_TRIES {
        if answer.is_ok() {
            break;
        }
        // A daemon that is replaced by the next one is away for a moment.
        sys::nap_ns(HARDEN_PAUSE_NS);
        answer = ask(Kind::Harden, body, None, SYNC_SECONDS);
    }
    let answer = answer.map_err(|_| Errno::IO)?;
    journal::keep([answer.descriptors[0], answer.descriptors[1]], answer.reply.given);
    answer.close_descriptors();
    match (answer.reply.magic, Status::from_u32(answer.reply.status)) {
        (MAGIC, Status::Ok) => Ok(()),
        (MAGIC, Status::Full) => Err(Errno::NOSPC),
        _ => Err(Errno::IO),
    }
}

/// This process has become a user whom the daemon does not serve: said once.
#[cold]
fn not_served() {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Relaxed) {
        sys::say(&[
            "not active in this process: it became another user than the daemon's (setuid, gosu, su); start it with \
             `seawall run --user NAME`",
        ]);
    }
}

/// One request, one reply.
fn ask(kind: Kind, body: &[u8], fd: Option<c_int>, seconds: i64) -> Result<Received, Errno> {
    let patience_us = match (session::hearing(), kind) {
        (Hearing::Speaks, _) => PATIENCE_US,
        // Its watchdog may answer this one; the question is the probe.
        (_, Kind::Hello) => PROBE_US,
        (Hearing::Silent, _) => return Err(Errno::AGAIN),
        (Hearing::Probe, _) => is_there(PROBE_US).map(|()| PATIENCE_US)?,
    };
    let begin = sys::now_ns(libc::CLOCK_MONOTONIC);
    let is_late = || sys::now_ns(libc::CLOCK_MONOTONIC) - begin >= seconds as u64 * 1_000_000_000;
    let (connection, mut reply) = (send(kind, body, fd, patience_us)?, Reply::new_zeroed());
    let (len, descriptors) = loop {
        match connection.receive(reply.as_mut_bytes()) {
            Err(Errno::AGAIN) if !is_late() => is_there(patience_us)?,
            done => break done?,
        }
    };
    let received = Received { reply, descriptors };
    if Reply::of(&reply.as_bytes()[..len]).is_none() {
        received.close_descriptors();
        return Err(Errno::PROTO);
    }
    if (reply.magic, Status::from_u32(reply.status)) == (MAGIC, Status::Denied) {
        not_served();
    }
    Ok(received)
}

fn send(kind: Kind, body: &[u8], fd: Option<c_int>, limit_us: i64) -> Result<Connection, Errno> {
    let mut room = [0; SOCKET_PATH_MAX];
    let path = environment::socket(&mut room).ok_or(Errno::NOENT)?;
    let connection = Connection::open(path, limit_us).inspect_err(|error| match *error {
        Errno::ACCESS | Errno::PERM => not_served(),
        // As many wait for it already as can.
        Errno::AGAIN => session::heard(false),
        _ => {}
    })?;
    connection.send([Request::new(kind, body.len() as u32).as_bytes(), body], fd)?;
    Ok(connection)
}

/// Asks a daemon that has not answered whether it is there at all. It is if it answers anything; its watchdog says that it
/// is not.
///
/// # Errors
/// AGAIN if it stands still, which is remembered; others if it is gone.
#[cold]
fn is_there(limit_us: i64) -> Result<(), Errno> {
    let mut reply = Reply::new_zeroed();
    let answered = send(Kind::Ping, &[], None, limit_us)
        .and_then(|connection| connection.receive(reply.as_mut_bytes()))
        .and_then(|_| match Status::from_u32(reply.status) {
            Status::Refused => Err(Errno::AGAIN),
            _ => Ok(()),
        });
    session::heard(!matches!(answered, Err(Errno::AGAIN)));
    answered
}
