//! A process that has joined a log: the engine, its client slot, and who the calling thread is.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::Ordering::Acquire;

use seawall_cache::front::word::Answer;
use seawall_cache::shared::{Cache, CachedFile, OperationOwner};
use seawall_core::client::{Course, Entered};
use seawall_core::{Engine, Owner};
use seawall_daemon::process::now_ns;

use crate::client::{self, Daemon};
use crate::stored;

/// One pool's log, as this process sees it.
pub struct Joined {
    /// The stages.
    pub engine: Engine,
    /// Asks the daemon.
    pub daemon: &'static Daemon,
    /// The zone of its block cache, if it has one.
    pub cache: Option<Cache>,
    slot: u32,
}

thread_local! {
    static THREAD: u32 = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
}

impl Joined {
    /// Attaches to the daemon that serves `pool`.
    ///
    /// # Errors
    /// If it does not answer, or has no room for another process.
    pub fn new(pool: &Path) -> io::Result<Self> {
        // A process has one, and the way to the journal refers to it: never given up.
        let daemon: &'static Daemon = Box::leak(Box::new(client::of(pool)));
        let (engine, cache) = client::hello(daemon)?;
        let slot = engine
            .claim_client(std::process::id(), now_ns())
            .ok_or_else(|| io::Error::other("too many processes are attached to the pool"))?;
        Ok(Self { engine, daemon, cache, slot })
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

    /// The calling thread, as an owner of the block cache's operations: by this the daemon tells whether it lives.
    pub fn owner(&self) -> Option<OperationOwner> {
        let generation = self.engine.shm().client(self.slot)?.generation().load(Acquire);
        Some(OperationOwner::of_client(self.slot, generation, self.thread()))
    }

    /// Asks that the file behind `fd` be managed; `is_atomic`: no page of it may tear.
    pub fn register(&self, fd: BorrowedFd<'_>, is_atomic: bool) -> Course {
        self.daemon.register(&self.engine, fd, is_atomic)
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

    /// Gives our client slot back: nothing of ours is under way any more.
    pub fn leave(&self) {
        self.engine.release_client(self.slot);
    }
}
