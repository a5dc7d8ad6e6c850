//! The daemon's signs of life, for its [watchdog](crate::watchdog), and what it makes up for when it stood still.
//!
//! | what happened meanwhile | what is done |
//! |---|---|
//! | a process without Seawall opened a file, and the watchdog let it | the file stays out of the log, and of the block cache, as if the daemon had let it |
//! | one wrote a file that the daemon hears of afterwards (inotify), and has gone | what the log holds is retired, so that no replay brings back what is older |
//! | one is still there | the events wait to be read, and are |
//! | processes came and went | the warden finds them, as ever |

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::time::{ClockId, clock_gettime};
use seawall_core::file::Flag;
use seawall_media::locks::lock;
use zerocopy::IntoBytes;

use crate::state::Daemon;
use crate::watch::Watch;
use crate::{cache, destaging, net, requests, warden};

/// A beat that waited so long: the daemon stood still.
const LATE: Duration = Duration::from_millis(500);

/// What the watchdog says.
pub(crate) enum ToDaemon {
    /// Give a sign. Sent at this time.
    Beat { at_ns: u64 },
    /// This process opened this file. 0: it is not known which.
    Opened { dev: u64, ino: u64, pid: u32 },
}

impl ToDaemon {
    pub fn bytes(&self) -> Vec<u8> {
        let (tag, words) = match *self {
            Self::Beat { at_ns } => (b'b', vec![at_ns]),
            Self::Opened { dev, ino, pid } => (b'o', vec![dev, ino, pid.into()]),
        };
        std::iter::once(tag).chain(words.iter().flat_map(|word| word.to_ne_bytes())).collect()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first()?;
        let words: Vec<u64> =
            rest.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes"))).collect();
        match (tag, words.as_slice()) {
            (b'b', [at_ns]) => Some(Self::Beat { at_ns: *at_ns }),
            (b'o', [dev, ino, pid]) => Some(Self::Opened { dev: *dev, ino: *ino, pid: *pid as u32 }),
            _ => None,
        }
    }
}

/// What the daemon says.
pub(crate) enum FromDaemon<'a> {
    /// The sign.
    Beat,
    /// This is answered to Hello from now on, with the descriptors that come along.
    Hello(&'a [u8]),
}

impl<'a> FromDaemon<'a> {
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        match bytes.split_first()? {
            (b'b', _) => Some(Self::Beat),
            (b'h', reply) => Some(Self::Hello(reply)),
            _ => None,
        }
    }
}

/// Of CLOCK_MONOTONIC: the time that a machine sleeps does not count.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Starts the watchdog. Without one, who needs the daemon waits for it.
pub(crate) fn start(daemon: &Arc<Daemon>, listener: &OwnedFd, command: fn() -> Command) {
    if let Err(e) = try_start(daemon, listener, command()) {
        daemon.log.say(format!("without a watchdog, should this process be stopped: {e}"));
    }
}

fn try_start(daemon: &Arc<Daemon>, listener: &OwnedFd, mut command: Command) -> io::Result<()> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    command.env_remove("LD_PRELOAD").env_remove("SEAWALL_SOCKET");
    command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut given = tell_hello(daemon, &ours)?;
    let mut watched = vec![listener.as_fd()];
    if let Watch::Fanotify(group) = &daemon.watch {
        watched.push(group.as_fd());
    }
    net::send(&ours, b"w", &watched)?;
    let daemon = Arc::clone(daemon);
    std::thread::Builder::new().name("pulse".into()).spawn(move || {
        while let Ok(Some(message)) = net::receive(&ours) {
            if answer(&daemon, &ours, &message.bytes, &mut given).is_err() {
                break;
            }
        }
        let _ = child.wait();
        daemon.log.say("the watchdog has ended");
    })?;
    Ok(())
}

/// Says what is answered to Hello. Returns the number of what is lent.
fn tell_hello(daemon: &Daemon, socket: &OwnedFd) -> io::Result<u32> {
    let (reply, descriptors) = requests::lent(daemon);
    net::send(socket, &[b"h", reply.as_bytes()].concat(), &descriptors)?;
    Ok(reply.given)
}

fn answer(daemon: &Daemon, socket: &OwnedFd, message: &[u8], given: &mut u32) -> io::Result<()> {
    match ToDaemon::of(message) {
        Some(ToDaemon::Beat { at_ns }) => {
            let waited = Duration::from_nanos(now_ns().saturating_sub(at_ns));
            if waited > LATE {
                catch_up(daemon, waited);
            }
            if requests::lent(daemon).0.given != *given {
                *given = tell_hello(daemon, socket)?;
            }
            net::send(socket, b"b", &[])?;
        }
        Some(ToDaemon::Opened { dev, ino, pid }) => opened(daemon, (dev, ino), pid),
        None => {}
    }
    Ok(())
}

/// The watchdog let a process open a file.
fn opened(daemon: &Daemon, inode: (u64, u64), pid: u32) {
    cache::opened_unseen(daemon, inode, pid);
    let known = daemon.engine.find(inode.0, inode.1);
    let Some(file) = known.and_then(|file| daemon.files.get(file.slot)) else { return };
    if daemon.engine.state(file.reference).has(Flag::ATOMIC) {
        warden::look_for_writers(daemon, inode, &daemon.strangers());
    } else {
        warden::keep_out(daemon, &file, pid);
    }
}

fn catch_up(daemon: &Daemon, waited: Duration) {
    // A registration that was under way has looked for writers before.
    drop(lock(&daemon.registering));
    for file in daemon.files.all() {
        let is_out = daemon.engine.state(file.reference).has(Flag::FOREIGN);
        if is_out && !lock(&daemon.foreign).holds(file.reference.slot) {
            warden::keep_out(daemon, &file, 0);
        }
    }
    destaging::round(daemon);
    daemon.log.say(format!("stood still for {:.1} s, and has caught up", waited.as_secs_f64()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_watchdog_says_is_understood() {
        let said = |what: ToDaemon| ToDaemon::of(&what.bytes()).expect("understood");
        assert!(matches!(said(ToDaemon::Beat { at_ns: 7 }), ToDaemon::Beat { at_ns: 7 }));
        let opened = said(ToDaemon::Opened { dev: 1, ino: 2, pid: 3 });
        assert!(matches!(opened, ToDaemon::Opened { dev: 1, ino: 2, pid: 3 }));
        for other in [&b""[..], b"b", b"b123", b"o12345678", b"x"] {
            assert!(ToDaemon::of(other).is_none());
        }
    }
}
