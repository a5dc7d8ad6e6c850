//! What the watchdog gives those who wait, in the daemon's place.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::Scope;
use std::time::{Duration, Instant};

use nix::sys::fanotify::{Fanotify, FanotifyEvent};
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
use crate::signs::ToDaemon;
use crate::{control, foreign, process, sys};

/// How long an open waits at most.
pub const LIMIT: Duration = Duration::from_millis(700);
/// How long a connection may take to say what it wants.
const REQUEST: Duration = Duration::from_secs(1);

/// What it needs to answer as the daemon would.
pub struct StandIn {
    /// With its client slot. `None`: nothing can be done but to let opens pass.
    engine: Option<(Engine, u32)>,
    cache: Option<Cache>,
    socket: OwnedFd,
    daemon: u32,
    greeted: Mutex<HashSet<u32>>,
    /// The daemon has given the sign.
    pub over: AtomicBool,
}

impl StandIn {
    pub fn new(hello: &Message, socket: OwnedFd, daemon: u32) -> Self {
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

    pub fn end(self) {
        if let Some((engine, slot)) = self.engine {
            engine.release_client(slot);
        }
    }

    /// Answers one request.
    pub fn serve(&self, connection: &OwnedFd, hello: &Message) {
        let _ = set_socket_timeout(connection, Timeout::Recv, Some(REQUEST));
        let Ok(peer) = net::peer(connection) else { return };
        let Ok(Some(message)) = net::receive(connection) else { return };
        let Ok((request, _)) = Request::read_from_prefix(&message.bytes) else { return };
        let me = rustix::process::geteuid().as_raw();
        // Without an answer: the daemon would have to hear of a process that is refused here.
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

    /// Says to a user that the daemon is stopped, unless it goes on within [`LIMIT`].
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
            "the daemon of this pool, process {}, is stopped: by a signal (SIGSTOP), a debugger or a frozen \
             control group. Databases go on meanwhile. Let the daemon go on with `kill -CONT {0}`, or kill it",
            self.daemon
        );
        let body = serde_json::to_vec(&control::Failure { error }).unwrap_or_default();
        let mut reply = Reply::new(Status::Failed);
        reply.body_len = body.len() as u32;
        let _ = net::send(connection, &[reply.as_bytes(), &body].concat(), &[]);
    }

    pub fn opened<'s>(&'s self, scope: &'s Scope<'s, '_>, group: &'s Fanotify, event: FanotifyEvent) {
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
    pub fn answer_what_the_daemon_took<'s>(&'s self, scope: &'s Scope<'s, '_>, group: &'s Fanotify) {
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
