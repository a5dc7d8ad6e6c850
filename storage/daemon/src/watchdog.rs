//! The watchdog: a small process that answers for a daemon that is stopped (SIGSTOP, a debugger, a frozen control group),
//! so that nobody waits for it. It is the daemon's child and ends with it, whatever state it is in itself.
//!
//! It asks the daemon for a sign of life ([`pulse`](crate::pulse)) some times a second. While none comes:
//!
//! | what waits | what it is given |
//! |---|---|
//! | a new process | what the daemon lends, as by the daemon: it goes on in the log |
//! | an open by a process without Seawall, of which the kernel asks us (fanotify) | it passes when the file has no live records and is not served from the block cache, or after a second. The daemon hears of it when it goes on |
//! | an open that the daemon was about to answer | the same: the event's descriptor is the daemon's, and is taken from there |
//! | any other request | a refusal at once: new files wait for the daemon, their fsyncs are real |
//!
//! Invariant: it does nothing that the daemon must know of but what it tells it. Both may be at work for a moment, when a
//! daemon goes on or was only slow: each event and each connection comes to one of them.
//!
//! Where it may, it leaves the control groups that are frozen with the daemon. Not handled here: one that it may not leave,
//! because it is not root, or in a container.

mod stand_in;

use std::ffi::CStr;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use nix::sys::fanotify::Fanotify;
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::net::{self, Message};
use crate::signs::{FromDaemon, ToDaemon, now_ns};
use crate::{process, sys};
use stand_in::{LIMIT, StandIn};

/// How often the daemon is asked.
const BEAT: Duration = Duration::from_millis(150);
/// How long it may take to answer. Both together are less than half a second, after which a client would give it up.
const PATIENCE: Duration = Duration::from_millis(200);

/// What the daemon gave it.
struct Given {
    /// The answer to Hello, and what goes with it.
    hello: Message,
    listener: OwnedFd,
    /// Opens that wait for an answer.
    group: Option<Fanotify>,
}

/// The process's name, as `ps` shows it.
const NAME: &CStr = c"seawall-watch";

/// True of a watchdog.
pub(crate) fn is_one(pid: u32) -> bool {
    process::name(pid).as_bytes() == NAME.to_bytes()
}

/// Is the watchdog of the process that started this one, with the socket as stdin; ends with it.
pub fn run() {
    // The kernel ends us with it, even while we are stopped ourselves.
    let kill = Some(rustix::process::Signal::KILL);
    let tied = rustix::process::set_parent_process_death_signal(kill);
    let _ = rustix::thread::set_name(NAME);
    leave_groups();
    let socket = io::stdin().as_fd().try_clone_to_owned();
    if let (Ok(()), Ok(socket)) = (tied, socket) {
        // An error means that the daemon is gone.
        let _ = watch(&socket);
    }
}

/// Moves to the control groups that nobody freezes: the roots, of version 1's freezer and of version 2, which is elsewhere
/// where a machine has both. Its end comes with the daemon's, whatever group is ended.
fn leave_groups() {
    const ROOTS: [&str; 3] = [
        "/sys/fs/cgroup/freezer/cgroup.procs",
        "/sys/fs/cgroup/unified/cgroup.procs",
        "/sys/fs/cgroup/cgroup.procs",
    ];
    for root in ROOTS {
        // Not there, or not allowed: then it is frozen with the daemon.
        let _ = std::fs::OpenOptions::new().write(true).open(root).and_then(|mut file| file.write_all(b"0"));
    }
}

fn watch(socket: &OwnedFd) -> io::Result<()> {
    let daemon = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs());
    let mut given = given(socket)?;
    loop {
        std::thread::sleep(BEAT);
        net::send(socket, &ToDaemon::Beat { at_ns: now_ns() }.bytes(), &[])?;
        if !hears(socket, &mut given, PATIENCE)? {
            stand_in(socket, &mut given, daemon)?;
        }
    }
}

fn given(socket: &OwnedFd) -> io::Result<Given> {
    let gone = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let hello = net::receive(socket)?.ok_or_else(gone)?;
    let Some(FromDaemon::Hello(bytes)) = FromDaemon::of(&hello.bytes) else { return Err(gone()) };
    let hello = Message { bytes: bytes.to_vec(), descriptors: hello.descriptors };
    let mut watched = net::receive(socket)?.ok_or_else(gone)?.descriptors.into_iter();
    let listener = watched.next().ok_or_else(gone)?;
    Ok(Given { hello, listener, group: watched.next().and_then(sys::fanotify) })
}

/// True if it gives the sign within this time.
fn hears(socket: &OwnedFd, given: &mut Given, limit: Duration) -> io::Result<bool> {
    let begin = Instant::now();
    while is_readable(&[socket.as_fd()], limit.saturating_sub(begin.elapsed()))?[0] {
        let message = net::receive(socket)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        match FromDaemon::of(&message.bytes) {
            Some(FromDaemon::Beat) => return Ok(true),
            Some(FromDaemon::Hello(bytes)) => {
                given.hello = Message { bytes: bytes.to_vec(), descriptors: message.descriptors };
            }
            None => {}
        }
    }
    Ok(false)
}

fn is_readable(fds: &[BorrowedFd<'_>], limit: Duration) -> io::Result<Vec<bool>> {
    let mut polled: Vec<_> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    rustix::io::retry_on_intr(|| rustix::event::poll(&mut polled, Some(&limit)))?;
    Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect())
}

/// Answers for the daemon until it gives the sign.
fn stand_in(socket: &OwnedFd, given: &mut Given, daemon: u32) -> io::Result<()> {
    let begin = Instant::now();
    let stand_in = StandIn::new(&given.hello, socket.as_fd().try_clone_to_owned()?, daemon);
    let mut has_answered_for_it = false;
    let ended = std::thread::scope(|scope| {
        loop {
            let mut fds = vec![socket.as_fd(), given.listener.as_fd()];
            fds.extend(given.group.as_ref().map(AsFd::as_fd));
            let ready = match is_readable(&fds, LIMIT) {
                Ok(ready) => ready,
                Err(e) => return Err(e),
            };
            if ready[1]
                && let Ok(connection) = net::accept(&given.listener)
            {
                let (stand_in, hello) = (&stand_in, &given.hello);
                scope.spawn(move || stand_in.serve(&connection, hello));
            }
            if let Some(group) = &given.group {
                for event in group.read_events().unwrap_or_default() {
                    stand_in.opened(scope, group, event);
                }
                if begin.elapsed() >= LIMIT && !std::mem::replace(&mut has_answered_for_it, true) {
                    stand_in.answer_what_the_daemon_took(scope, group);
                }
            }
            // Nothing of it may be used here while threads do: a newer Hello waits.
            if ready[0] {
                stand_in.over.store(true, Relaxed);
                return Ok(());
            }
        }
    });
    stand_in.end();
    ended?;
    while !hears(socket, given, LIMIT)? {}
    Ok(())
}
