//! How requests travel to the daemon: one connection each, with a time limit. What is asked, and what the answers mean, is
//! every front's: [`seawall_core::client`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use seawall_cache::shared::Cache;
use seawall_core::client::{Client, Received, Transport};
use seawall_core::journal::Way;
use seawall_core::{Engine, Errno};
use seawall_daemon::control::Control;
use seawall_daemon::net;
use seawall_media::block::Device;
use seawall_wire::message::Reply;

use crate::{lent, stored};

/// The daemon of one pool, as its client sees it.
pub type Daemon = Client<Socket>;

/// The socket of the daemon that serves a pool.
pub struct Socket {
    pool: PathBuf,
    not_served: AtomicBool,
}

/// The daemon that serves `pool`.
pub fn of(pool: &Path) -> Daemon {
    Client::new(Socket { pool: pool.to_owned(), not_served: AtomicBool::new(false) })
}

/// Attaches: maps pool and run-time memory, and the zone of the block cache, if there is one. A front has one daemon, as
/// long as its process lives.
///
/// # Errors
/// If the daemon is not there, refuses, or is of another version.
pub fn hello(daemon: &'static Daemon) -> io::Result<(Engine, Option<Cache>)> {
    let Received { reply, mut descriptors } = daemon.hello().map_err(in_words)?;
    // It comes last.
    let zone = if reply.cache_len > 0 { descriptors.pop() } else { None };
    let cache = zone.map(|fd| stored::join(fd.as_fd(), reply.cache_len)).transpose()?;
    let mut descriptors = descriptors.into_iter();
    let (pool, shm) = (descriptors.next(), descriptors.next());
    let journal = match (descriptors.next(), descriptors.next()) {
        (Some(first), Some(second)) => Some(lent::way(daemon, [first, second], reply.given)),
        (Some(only), None) => Some(Way::Own(Device::new(only))),
        // A log that keepers keep, or none.
        (None, _) => Some(lent::by_daemon(daemon)),
    };
    let [pool, shm] = [&pool, &shm].map(|fd| fd.as_ref().map(AsFd::as_fd));
    Ok((Engine::join(&reply, pool, shm, journal).map_err(io::Error::other)?, cache))
}

/// Why there is no answer, as a person reads it.
fn in_words(error: Errno) -> io::Error {
    match error {
        Errno::NOTCONN => io::Error::new(io::ErrorKind::NotConnected, "no daemon serves the pool"),
        Errno::BUSY => io::Error::new(io::ErrorKind::ResourceBusy, "the daemon is about to end: try again"),
        Errno::AGAIN => io::Error::new(io::ErrorKind::TimedOut, "the daemon is stopped, or hangs"),
        Errno::CONNRESET => io::Error::new(io::ErrorKind::UnexpectedEof, "the daemon hung up"),
        Errno::PROTO => io::Error::new(io::ErrorKind::InvalidData, "the daemon's answer makes no sense"),
        other => other.into(),
    }
}

impl Transport for Socket {
    type Connection = Control;
    type Descriptors = Vec<OwnedFd>;

    fn now_ns(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }

    fn nap_ns(&self, ns: u64) {
        sleep(Duration::from_nanos(ns));
    }

    fn send(&self, parts: [&[u8]; 2], fd: Option<BorrowedFd<'_>>, limit_us: u32) -> Result<Control, Errno> {
        let limit = Duration::from_micros(limit_us.into());
        let socket = Control::connect_within(&self.pool, limit).map_err(errno)?.ok_or(Errno::NOTCONN)?;
        net::send(&socket, &parts.concat(), fd.as_slice()).map_err(errno)?;
        Ok(socket)
    }

    fn receive(&self, socket: &Control) -> Result<Received<Vec<OwnedFd>>, Errno> {
        let message = net::receive(socket).map_err(errno)?.ok_or(Errno::CONNRESET)?;
        let reply = Reply::of(&message.bytes).ok_or(Errno::PROTO)?;
        Ok(Received { reply, descriptors: message.descriptors })
    }

    fn say(&self, what: &'static str) {
        errln!("seawall: {what}");
    }

    fn not_served(&self) {
        if !self.not_served.swap(true, Relaxed) {
            errln!("seawall: the daemon that answers does not belong to the user of this process");
        }
    }
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
