//! The log as this process sees it: the engine, our client slot, and who the calling thread is.

use std::io;
use std::path::Path;

use seawall_core::policy::{self, Manage};
use seawall_core::{Engine, Owner};
use seawall_daemon::process::now_ns;

use crate::client::{Client, Registered};

/// Adds roots for databases that appear while the mount serves. Input: the path of a file below no root.
/// True if it lies below one now.
pub type Discover = Box<dyn Fn(&Path) -> bool + Send + Sync>;

/// One pool's log.
pub struct Log {
    /// The stages.
    pub engine: Engine,
    client: Client,
    slot: u32,
    discover: Discover,
}

thread_local! {
    static THREAD: usize = rustix::thread::gettid().as_raw_nonzero().get() as usize;
}

impl Log {
    /// Attaches to the daemon that serves `pool`.
    ///
    /// # Errors
    /// If it does not answer, or has no room for another process.
    pub fn join(pool: &Path, discover: Discover) -> io::Result<Self> {
        let client = Client::new(pool);
        let engine = client.hello()?;
        let slot = engine
            .claim_client(std::process::id(), now_ns())
            .ok_or_else(|| io::Error::other("too many processes are attached to the pool"))?;
        Ok(Self { engine, client, slot, discover })
    }

    /// The calling thread, as an owner of locks and lanes.
    #[inline]
    pub fn me(&self) -> Owner {
        // Owner drops the low bits of what usually is an address.
        Owner::new(self.slot, THREAD.with(|id| *id) << 4)
    }

    /// What the presets say about a path.
    pub fn decide(&self, path: &Path) -> Manage {
        use std::os::unix::ffi::OsStrExt;
        let ask = || policy::decide(self.engine.shm(), path.as_os_str().as_bytes());
        let known = ask().or_else(|| (self.discover)(path).then(ask).flatten());
        known.map_or(Manage::Bypass, |(_, manage)| manage)
    }

    /// Asks that a file be managed.
    pub fn register(&self, fd: std::os::fd::BorrowedFd<'_>) -> Registered {
        match self.client.register(fd) {
            Registered::File(file) if !self.engine.knows(file) => Registered::NotNow,
            answer => answer,
        }
    }

    /// Gives our client slot back: nothing of ours is under way any more.
    pub fn leave(&self) {
        self.engine.release_client(self.slot);
    }
}
