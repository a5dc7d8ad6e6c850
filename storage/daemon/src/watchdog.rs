//! The watchdog: a small process that answers for a daemon that stands still (SIGSTOP, a debugger, a frozen control group),
//! so that nobody waits for it. It is the daemon's child and ends with it, whatever state it is in itself.
//!
//! It asks the daemon for a sign of life ([`pulse`](crate::pulse)) some times a second. While none comes:
//!
//! | who waits | what it is given |
//! |---|---|
//! | a new process | what the daemon lends, as by the daemon: it goes on in the log |
//! | an open by a process without Seawall, of which the kernel asks us (fanotify) | it passes when the file has no live records and is not served from the block cache, or after a second. The daemon hears of it when it goes on |
//! | an open that the daemon was about to answer | the same: the event's descriptor is the daemon's, and is taken from there |
//! | who has another request | a refusal at once: new files wait for the daemon, their fsyncs are real |
//!
//! Invariant: it does nothing that the daemon must know of but what it tells it. Both may be at work for a moment, when a
//! daemon goes on or was only slow: each event and each connection comes to one of them.
//!
//! Where it may, it leaves the control groups that are frozen with the daemon. Not handled here: one that it may not leave,
//! because it is not root, or in a container.

use std::collections::HashSet;
use std::ffi::CStr;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::Scope;
use std::time::{Duration, Instant};

use nix::sys::fanotify::{Fanotify, FanotifyEvent};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::process::{PidfdGetfdFlags, pidfd_getfd};
use seawall_cache::shared::Cache;
use seawall_core::file::{Flag, KeptOut};
use seawall_core::journal::{Pair, Way};
use seawall_core::{Engine, FileRef, Owner, certain};
use seawall_media::Region;
use seawall_media::block::Device;
use seawall_media::locks::lock;
use seawall_wire::message::{Kind, MAGIC, Reply, Request, Status};
use zerocopy::{FromBytes, IntoBytes};

use crate::net::{self, Message};
use crate::parts::watch::{COALESCE, allow, is_of_an_event};
use crate::signs::{FromDaemon, ToDaemon, now_ns};
use crate::{control, foreign, process, sys};

/// How often the daemon is asked.
const BEAT: Duration = Duration::from_millis(150);
/// How long it may take to answer. Both together are less than half a second, after which a client would give it up.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long an open waits at most.
const LIMIT: Duration = Duration::from_millis(700);
/// How long a connection may take to say what it wants.
const REQUEST: Duration = Duration::from_secs(1);

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

fn is_readable(fds: &[std::os::fd::BorrowedFd<'_>], limit: Duration) -> io::Result<Vec<bool>> {
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

/// What it needs to answer as the daemon would.
struct StandIn {
    /// With its client slot. `None`: nothing can be done but to let opens pass.
    engine: Option<(Engine, u32)>,
    cache: Option<Cache>,
    socket: OwnedFd,
    daemon: u32,
    greeted: Mutex<HashSet<u32>>,
    /// The daemon has given the sign.
    over: AtomicBool,
}

impl StandIn {
    fn new(hello: &Message, socket: OwnedFd, daemon: u32) -> Self {
        let engine = join(hello).and_then(|engine| {
            let slot = engine.claim_client(std::process::id(), process::now_ns())?;
            Some((engine, slot))
        });
        Self {
            engine,
            cache: join_cache(hello),
            socket,
            daemon,
            greeted: Mutex::default(),
            over: AtomicBool::new(false),
        }
    }

    fn end(self) {
        if let Some((engine, slot)) = self.engine {
            engine.release_client(slot);
        }
    }

    /// Answers one request.
    fn serve(&self, connection: &OwnedFd, hello: &Message) {
        let _ = set_socket_timeout(connection, Timeout::Recv, Some(REQUEST));
        let Ok(peer) = net::peer(connection) else { return };
        let Ok(Some(message)) = net::receive(connection) else { return };
        let Ok((request, _)) = Request::read_from_prefix(&message.bytes) else { return };
        let me = rustix::process::geteuid().as_raw();
        // The daemon would have to be told of whom it refuses.
        if request.magic != MAGIC || (peer.uid != me && peer.uid != 0) {
            return;
        }
        let status = match Kind::from_u32(request.kind) {
            Some(Kind::Hello) => {
                lock(&self.greeted).insert(peer.pid);
                let descriptors: Vec<_> = hello.descriptors.iter().map(AsFd::as_fd).collect();
                let _ = net::send(connection, &hello.bytes, &descriptors);
                return;
            }
            Some(Kind::Register) => Status::Later,
            Some(Kind::Enter | Kind::SyncFile | Kind::LookForRoots | Kind::Ping) => Status::Refused,
            // Without an answer it is asked once more: the daemon may go on.
            Some(Kind::GoWithout | Kind::Harden) | None => return,
            Some(_) => return self.refuse(connection),
        };
        let _ = net::send(connection, Reply::new(status).as_bytes(), &[]);
    }

    /// What a user is told, if the daemon does not go on just now.
    fn refuse(&self, connection: &OwnedFd) {
        let begin = Instant::now();
        while begin.elapsed() < LIMIT && !self.over.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
        }
        if self.over.load(Relaxed) {
            let _ = net::send(connection, Reply::new(Status::Later).as_bytes(), &[]);
            return;
        }
        let error = format!(
            "the daemon of this pool, process {}, stands still: it was stopped, or a debugger holds it. \
             Databases go on meanwhile. Let the daemon go on with `kill -CONT {0}`, or kill it",
            self.daemon
        );
        let body = serde_json::to_vec(&control::Failure { error }).unwrap_or_default();
        let mut reply = Reply::new(Status::Failed);
        reply.body_len = body.len() as u32;
        let _ = net::send(connection, &[reply.as_bytes(), &body].concat(), &[]);
    }

    fn opened<'s>(&'s self, scope: &'s Scope<'s, '_>, group: &'s Fanotify, event: FanotifyEvent) {
        let pid = event.pid().unsigned_abs();
        if self.is_ours(pid) {
            return allow(group, &event);
        }
        scope.spawn(move || {
            let Some(stat) = event.fd().and_then(|fd| rustix::fs::fstat(fd).ok()) else { return };
            let inode = (stat.st_dev, stat.st_ino);
            self.suspend(inode);
            let file = self.file(inode);
            if file.is_some_and(|(_, is_atomic)| is_atomic) {
                // As the daemon does: most of them read.
                allow(group, &event);
                std::thread::sleep(COALESCE);
            }
            if let (Some((file, is_atomic)), Some(fd)) = (file, event.fd().map(|fd| fd.try_clone_to_owned()))
                && let Ok(fd) = fd
                && (!is_atomic || foreign::writes(pid, inode.0, inode.1))
            {
                self.leave_within_limit(scope, file, fd);
            }
            allow(group, &event);
            self.tell(inode, pid);
        });
    }

    fn is_ours(&self, pid: u32) -> bool {
        let is_client = |engine: &Engine| {
            let shm = engine.shm();
            let mut clients = (0..shm.shape().clients).filter_map(|i| shm.client(i));
            clients.any(|client| client.pid().load(Acquire) == pid)
        };
        pid == self.daemon
            || pid == std::process::id()
            || lock(&self.greeted).contains(&pid)
            || self.engine.as_ref().is_some_and(|(engine, _)| is_client(engine))
    }

    /// The managed file of an inode, and whether its every write is logged.
    fn file(&self, (dev, ino): (u64, u64)) -> Option<(FileRef, bool)> {
        let (engine, _) = self.engine.as_ref()?;
        let file = engine.find(dev, ino)?;
        Some((file, engine.state(file).has(Flag::ATOMIC)))
    }

    /// Takes a file out of the log; whoever has its lock may be stopped too.
    fn leave_within_limit<'s>(&'s self, scope: &'s Scope<'s, '_>, file: FileRef, fd: OwnedFd) {
        let (done, wait) = mpsc::channel::<()>();
        scope.spawn(move || {
            self.leave(file, &fd);
            drop(done);
        });
        let _ = wait.recv_timeout(LIMIT);
    }

    /// Marked as a stranger's, it stays out until the daemon lets it back.
    fn leave(&self, file: FileRef, fd: &OwnedFd) {
        let Some((engine, slot)) = &self.engine else { return };
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as usize;
        let me = Owner::new(*slot, thread << 4);
        if engine.knows(file) && !engine.state(file).has(Flag::FOREIGN) {
            let sync = || certain::fdatasync(fd.as_fd());
            let out = engine.take_out(me, file, sync);
            engine.keep_out(file, KeptOut::Foreign);
            out.finish(sync);
        }
    }

    /// What the block cache holds of it is not served until the daemon has looked.
    fn suspend(&self, (dev, ino): (u64, u64)) {
        if let Some((cache, file)) =
            self.cache.as_ref().and_then(|cache| Some((cache, cache.find(dev, ino)?)))
        {
            cache.suspend(file);
        }
    }

    fn tell(&self, (dev, ino): (u64, u64), pid: u32) {
        // It reads them when it goes on. With thousands of them there is no room: it finds the marks.
        let _ = net::send_now(&self.socket, &ToDaemon::Opened { dev, ino, pid }.bytes());
    }

    /// Lets the opens pass that the daemon has read the events of. The kernel knows them by the numbers that the daemon's
    /// descriptors have.
    fn answer_what_the_daemon_took<'s>(&'s self, scope: &'s Scope<'s, '_>, group: &'s Fanotify) {
        let Ok(daemon) = process::open(self.daemon) else { return };
        for fd in 0..process::descriptors(self.daemon) {
            match pidfd_getfd(&daemon, fd, PidfdGetfdFlags::empty()) {
                Ok(open) => {
                    if is_of_an_event(&open) {
                        scope.spawn(move || {
                            self.passes(scope, open);
                            sys::allow(group, fd);
                        });
                    }
                }
                Err(Errno::BADF) => {}
                // We may not look at it: to open the file by its path waits for this very process.
                Err(_) if sys::allow(group, fd) => {
                    let path = format!("/proc/{}/fd/{fd}", self.daemon);
                    scope.spawn(move || {
                        std::fs::File::open(path)
                            .into_iter()
                            .for_each(|open| self.passes(scope, open.into()));
                    });
                }
                Err(_) => {}
            }
        }
    }

    /// Somebody opens this file.
    fn passes<'s>(&'s self, scope: &'s Scope<'s, '_>, open: OwnedFd) {
        let Ok(stat) = rustix::fs::fstat(&open) else { return };
        let inode = (stat.st_dev, stat.st_ino);
        self.suspend(inode);
        if let Some((file, false)) = self.file(inode) {
            self.leave_within_limit(scope, file, open);
        }
        self.tell(inode, 0);
    }
}

/// Joins as a front does.
fn join(hello: &Message) -> Option<Engine> {
    let reply = Reply::of(&hello.bytes)?;
    let mut descriptors = hello.descriptors.iter();
    let (pool, shm) = (descriptors.next()?, descriptors.next()?);
    let of_cache = usize::from(reply.cache_len > 0);
    let journal = descriptors.take(hello.descriptors.len() - 2 - of_cache);
    let mut journal = journal.map(|fd| Some(Device::new(fd.try_clone().ok()?)));
    let way = match (journal.next().flatten(), journal.next().flatten()) {
        (Some(first), Some(second)) => Some(Way::Mirrored(Pair::new([first, second], reply.given).into())),
        (first, _) => first.map(Way::Own),
    };
    Engine::join(&reply, Some(pool.as_fd()), Some(shm.as_fd()), way).ok()
}

fn join_cache(hello: &Message) -> Option<Cache> {
    let reply = Reply::of(&hello.bytes).filter(|reply| reply.cache_len > 0)?;
    let region = Region::map(hello.descriptors.last()?, reply.cache_len, false).ok()?;
    Cache::join(region).ok()
}
