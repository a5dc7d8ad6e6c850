//! The log as this process sees it: the engine, our client slot, and who the calling thread is.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use seawall_cache::front::word::Answer;
use seawall_cache::shared::{Cache, CachedFile};
use seawall_core::client::{Course, Entered};
use seawall_core::policy::{self, Manage};
use seawall_core::{Engine, Owner};
use seawall_daemon::process::now_ns;

use crate::client::{self, Daemon};
use crate::refused::Refused;
use crate::stored;

/// Adds roots for databases that appear while the mount serves. Input: the path of a file below no root.
/// True if it lies below one now.
pub type Discover = Box<dyn Fn(&Path) -> bool + Send + Sync>;

/// One pool's log.
pub struct Log {
    /// The stages.
    pub engine: Engine,
    /// Asks the daemon.
    pub daemon: &'static Daemon,
    slot: u32,
    /// The zone of its block cache, if it has one.
    pub cache: Option<Cache>,
    discover: Discover,
    /// Directories whose names are not in the log.
    pub refused: Refused,
}

thread_local! {
    static THREAD: u32 = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
}

impl Log {
    /// Attaches to the daemon that serves `pool`.
    ///
    /// # Errors
    /// If it does not answer, or has no room for another process.
    pub fn join(pool: &Path, discover: Discover) -> io::Result<Self> {
        // A mount has one, and the way to the journal refers to it: never given up.
        let daemon: &'static Daemon = Box::leak(Box::new(client::of(pool)));
        let (engine, cache) = client::hello(daemon)?;
        let slot = engine
            .claim_client(std::process::id(), now_ns())
            .ok_or_else(|| io::Error::other("too many processes are attached to the pool"))?;
        Ok(Self { engine, daemon, slot, cache, discover, refused: Refused::default() })
    }

    /// The calling thread, as an owner of locks and lanes.
    #[inline]
    pub fn me(&self) -> Owner {
        // Owner drops the low bits of what usually is an address.
        Owner::new(self.slot, (self.thread() as usize) << 4)
    }

    /// The calling thread's number.
    #[inline]
    pub fn thread(&self) -> u32 {
        THREAD.with(|id| *id)
    }

    /// Our client slot.
    #[inline]
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// What the presets say about a path.
    pub fn decide(&self, path: &Path) -> Manage {
        let ask = || policy::decide(self.engine.shm(), path.as_os_str().as_bytes());
        let known = ask().or_else(|| (self.discover)(path).then(ask).flatten());
        known.map_or(Manage::Bypass, |(_, manage)| manage)
    }

    /// Asks that the file behind `fd`, at `path`, be managed.
    pub fn register(&self, fd: BorrowedFd<'_>, path: Option<&Path>) -> Course {
        self.daemon.register(&self.engine, fd, path.is_some_and(|path| self.is_atomic(path)))
    }

    /// Asks that the file behind `fd` be served from the block cache, and keeps what its blocks are read by.
    pub fn enter(&self, fd: BorrowedFd<'_>) -> Answer {
        let (entered, disk) = self.daemon.enter(fd);
        disk.into_iter().flatten().for_each(stored::know);
        match entered {
            Entered::File { slot, tenant } => Answer::File(CachedFile { slot, tenant }),
            Entered::Never => Answer::Never,
            Entered::NotNow => Answer::NotNow,
        }
    }

    /// True if files at this path are under policy `atomic`.
    pub fn is_atomic(&self, path: &Path) -> bool {
        let shm = self.engine.shm();
        let decided = policy::decide(shm, path.as_os_str().as_bytes());
        decided.is_some_and(|decided| policy::is_atomic(shm, decided))
    }

    /// Gives our client slot back: nothing of ours is under way any more.
    pub fn leave(&self) {
        self.engine.release_client(self.slot);
    }
}
