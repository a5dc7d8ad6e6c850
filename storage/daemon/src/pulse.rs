//! The daemon's signs of life, for its [watchdog](crate::watchdog), and what it makes up for when it was stopped.
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
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{PTracer, set_ptracer};
use seawall_core::file::Flag;
use zerocopy::IntoBytes;

use crate::parts::watch::Watch;
use crate::signs::{ToDaemon, now_ns};
use crate::state::Daemon;
use crate::{cache, destaging, hello, net, outside, process};

/// A beat that waited so long: the daemon was stopped, or had no processor.
const LATE: Duration = Duration::from_millis(500);

/// A watchdog at work.
pub(crate) struct Watchdog {
    /// The daemon's end of what they talk by.
    socket: Arc<OwnedFd>,
    thread: JoinHandle<()>,
}

impl Watchdog {
    /// Ends it and waits until it has ended: it has the log's memory, which whoever starts next may need the room of.
    pub(crate) fn end(self) {
        let _ = shutdown(&self.socket, Shutdown::Both);
        let _ = self.thread.join();
    }
}

/// Starts the watchdog. Without one, whoever needs the daemon waits for it.
pub(crate) fn start(daemon: &Arc<Daemon>, listener: &OwnedFd, command: fn() -> Command) -> Option<Watchdog> {
    let started = try_start(daemon, listener, command());
    if let Err(e) = &started {
        daemon.log.say(format!(
            "cannot start a watchdog, which answers in this process's place should it be stopped: {e}"
        ));
    }
    started.ok()
}

fn try_start(daemon: &Arc<Daemon>, listener: &OwnedFd, mut command: Command) -> io::Result<Watchdog> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    command.env_remove("LD_PRELOAD").env_remove("SEAWALL_SOCKET");
    command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    // It takes descriptors of events from us. Where no security module asks who may, this is an error.
    if let Some(watchdog) = process::id(child.id()) {
        let _ = set_ptracer(PTracer::ProcessID(watchdog));
    }
    let mut given = tell_hello(daemon, &ours)?;
    let mut watched = vec![listener.as_fd()];
    if let Watch::Fanotify(group) = &daemon.watch {
        watched.push(group.as_fd());
    }
    net::send(&ours, b"w", &watched)?;
    let (daemon, socket) = (Arc::clone(daemon), Arc::new(ours));
    let ours = Arc::clone(&socket);
    let thread = std::thread::Builder::new().name("pulse".into()).spawn(move || {
        while let Ok(Some(message)) = net::receive(&ours) {
            if answer(&daemon, &ours, &message.bytes, &mut given).is_err() {
                break;
            }
        }
        // It may be stopped itself, and without the socket it is of no use.
        let _ = child.kill();
        let _ = child.wait();
        daemon.log.say("the watchdog has ended");
    })?;
    Ok(Watchdog { socket, thread })
}

/// Says what is answered to Hello. Returns the number of what is lent.
fn tell_hello(daemon: &Daemon, socket: &OwnedFd) -> io::Result<u32> {
    let (reply, descriptors) = hello::lent(daemon);
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
            if hello::lent(daemon).0.given != *given {
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
        outside::look_for_writers(daemon, inode, &daemon.strangers());
    } else {
        outside::keep_out(daemon, &file, pid);
    }
}

fn catch_up(daemon: &Daemon, waited: Duration) {
    // A registration that was under way has looked for writers before.
    daemon.registering.wait();
    for file in daemon.files.all() {
        let is_out = daemon.engine.state(file.reference).has(Flag::FOREIGN);
        if is_out && !daemon.held_out.holds(file.reference.slot) {
            outside::keep_out(daemon, &file, 0);
        }
    }
    destaging::round(daemon);
    daemon.log.say(format!("the daemon was stopped for {:.1} s, and has caught up", waited.as_secs_f64()));
}
