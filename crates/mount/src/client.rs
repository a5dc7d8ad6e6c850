//! Requests to the daemon: the same messages as a preloaded process sends.
//!
//! One connection for each request, with a time limit: a daemon that stands still costs speed (the file stays
//! with the kernel, its fsyncs are real), never a hang.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use seawall_cache::front::word::Answer;
use seawall_cache::shared::{Cache, FileRef as CacheFile};
use seawall_core::journal::Way;
use seawall_core::{Engine, FileRef};
use seawall_daemon::control::Control;
use seawall_daemon::net;
use seawall_media::block::Device;
use seawall_wire::message::{Kind, MAGIC, Reply, Request, Status};
use zerocopy::IntoBytes;

use crate::{cached, lent, stored};

/// How long one answer may take. A registration under policy `atomic` syncs the file.
const PATIENCE: Duration = Duration::from_secs(10);

/// After so long without an answer the daemon is asked whether it is there, and given as long to answer that.
const SLICE: Duration = Duration::from_millis(500);
/// The same of one that stood still a moment ago, and how often.
const PROBE: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_secs(1);

/// What became of a registration.
pub enum Registered {
    /// The file is managed now.
    File(FileRef),
    /// It is not to be managed.
    No,
    /// Not now: it cannot be, or the daemon did not answer. Asked again later.
    NotNow,
    /// Not while its database is frozen.
    Later,
}

/// The daemon of one pool, as its client sees it.
#[derive(Clone)]
pub struct Client {
    pool: PathBuf,
}

impl Client {
    /// Of the daemon that serves `pool`.
    pub fn new(pool: &Path) -> Self {
        Self { pool: pool.to_owned() }
    }

    /// Attaches: maps pool and run-time memory, and the zone of the block cache, if there is one.
    ///
    /// # Errors
    /// If the daemon is not there, refuses, or is of another version.
    pub fn hello(&self) -> io::Result<(Engine, Option<Cache>)> {
        let (reply, mut descriptors) = self.ask(Kind::Hello, &[], None, PATIENCE)?;
        // It comes last.
        let zone = if reply.cache_len > 0 { descriptors.pop() } else { None };
        let cache = zone.map(|fd| cached::join(fd.as_fd(), reply.cache_len)).transpose()?;
        let mut descriptors = descriptors.into_iter();
        let (pool, shm) = (descriptors.next(), descriptors.next());
        let journal = match (descriptors.next(), descriptors.next()) {
            (Some(first), Some(second)) => Some(lent::way(self.clone(), [first, second], reply.given)),
            (first, _) => first.map(Device::new).map(Way::Own),
        };
        let [pool, shm] = [&pool, &shm].map(|fd| fd.as_ref().map(AsFd::as_fd));
        Ok((Engine::join(&reply, pool, shm, journal).map_err(io::Error::other)?, cache))
    }

    /// Asks that the file behind `fd` be served from the block cache.
    pub fn enter(&self, fd: BorrowedFd<'_>) -> Answer {
        let Ok((reply, disk)) = self.ask(Kind::Enter, &[], Some(fd), PATIENCE) else {
            return Answer::NotNow;
        };
        disk.into_iter().for_each(stored::know);
        match (reply.magic, Status::from_u32(reply.status)) {
            (MAGIC, Status::Ok) => {
                Answer::File(CacheFile { slot: reply.slot, tenant: reply.generation as u16 })
            }
            (MAGIC, Status::Refused) => Answer::NotNow,
            _ => Answer::Never,
        }
    }

    /// Asks that the file behind `fd` be managed. `None`: the daemon did not answer.
    pub fn register(&self, fd: BorrowedFd<'_>) -> Option<Registered> {
        let (reply, _) = self.ask(Kind::Register, &[], Some(fd), PATIENCE).ok()?;
        Some(match (reply.magic, Status::from_u32(reply.status)) {
            (MAGIC, Status::Ok) => {
                Registered::File(FileRef { slot: reply.slot, generation: reply.generation })
            }
            (MAGIC, Status::Bypass) => Registered::No,
            (MAGIC, Status::Later) => Registered::Later,
            _ => Registered::NotNow,
        })
    }

    /// Has the guard of a managed file raised at the name that it is about to get, in `dir`. Without an answer it is raised
    /// when the next daemon finds the file there.
    pub fn renaming(&self, file: FileRef, dir: BorrowedFd<'_>, name: &OsStr) {
        let body = [&file.slot.to_le_bytes()[..], &file.generation.to_le_bytes(), name.as_bytes()].concat();
        let _ = self.ask(Kind::Rename, &body, Some(dir), PATIENCE);
    }

    /// Has guards in a directory lowered that protect nothing any more. False: nothing was done.
    pub fn lower_left(&self, dir: BorrowedFd<'_>) -> bool {
        let answer = self.ask(Kind::LowerLeft, &[], Some(dir), PATIENCE);
        answer.is_ok_and(|(reply, _)| (reply.magic, Status::from_u32(reply.status)) == (MAGIC, Status::Ok))
    }

    /// One request, one reply.
    ///
    /// # Errors
    /// If the daemon does not answer, or makes no sense.
    pub(crate) fn ask(
        &self,
        kind: Kind,
        body: &[u8],
        fd: Option<BorrowedFd<'_>>,
        patience: Duration,
    ) -> io::Result<(Reply, Vec<OwnedFd>)> {
        if !SILENCE.may_ask(|| self.is_there(PROBE)) {
            return Err(stands_still());
        }
        let socket = self.send(kind, body, fd, SLICE)?;
        let begin = Instant::now();
        let message = loop {
            match net::receive(&socket) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && begin.elapsed() < patience => {
                    if !SILENCE.heard(self.is_there(SLICE)) {
                        return Err(stands_still());
                    }
                }
                received => break received?,
            }
        };
        let message =
            message.ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "the daemon hung up"))?;
        let reply = Reply::of(&message.bytes).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "the daemon's answer makes no sense")
        })?;
        Ok((reply, message.descriptors))
    }

    fn send(
        &self,
        kind: Kind,
        body: &[u8],
        fd: Option<BorrowedFd<'_>>,
        patience: Duration,
    ) -> io::Result<Control> {
        let socket = Control::connect(&self.pool)?
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotConnected, "no daemon serves the pool"))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(patience))?;
        let bytes = [Request::new(kind, body.len() as u32).as_bytes(), body].concat();
        net::send(&socket, &bytes, fd.as_slice())?;
        Ok(socket)
    }

    /// False if the daemon does not even answer this, or its watchdog says that it stands still. One that is gone is not
    /// silent.
    fn is_there(&self, patience: Duration) -> bool {
        match self.send(Kind::Ping, &[], None, patience).and_then(net::receive) {
            Ok(Some(message)) => Reply::of(&message.bytes)
                .is_none_or(|reply| Status::from_u32(reply.status) != Status::Refused),
            Ok(None) => true,
            Err(e) => e.kind() != io::ErrorKind::WouldBlock,
        }
    }
}

fn stands_still() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the daemon stands still")
}

/// A daemon that stands still costs this process one wait; then it is asked nothing but whether it is there, now and then.
struct Silence(Mutex<Option<Instant>>);

static SILENCE: Silence = Silence(Mutex::new(None));

impl Silence {
    fn next_probe(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if it speaks, as far as is known, or says so now.
    fn may_ask(&self, is_there: impl FnOnce() -> bool) -> bool {
        {
            let mut next = self.next_probe();
            match *next {
                None => return true,
                Some(at) if Instant::now() < at => return false,
                Some(_) => *next = Some(Instant::now() + PAUSE),
            }
        }
        self.heard(is_there())
    }

    fn heard(&self, is_there: bool) -> bool {
        *self.next_probe() = (!is_there).then(|| Instant::now() + PAUSE);
        is_there
    }
}
