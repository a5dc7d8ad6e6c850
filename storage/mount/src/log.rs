//! The log as a mount sees it, and what its presets say about files.

use std::io;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use seawall_core::Owner;
use seawall_core::client::Course;
use seawall_core::guards::Guards;
use seawall_core::policy::{self, Manage};
use seawall_front::Joined;

use crate::noted::Noted;

/// Adds roots for databases that appear while the mount serves. Input: the path of a file below no root.
/// True if it lies below one now.
pub type Discover = Box<dyn Fn(&Path) -> bool + Send + Sync>;

/// One pool's log.
pub struct Log {
    joined: Joined,
    discover: Discover,
    /// Directories whose names are not in the log.
    pub refused: Noted,
}

impl Deref for Log {
    type Target = Joined;

    #[inline]
    fn deref(&self) -> &Joined {
        &self.joined
    }
}

impl Log {
    /// Attaches to the daemon that serves `pool`.
    ///
    /// # Errors
    /// If it does not answer, or has no room for another process.
    pub fn join(pool: &Path, discover: Discover) -> io::Result<Self> {
        Ok(Self { joined: Joined::new(pool)?, discover, refused: Noted::default() })
    }

    /// The guards, and who acts on names that they take.
    pub fn guards(&self) -> (Guards<'_>, Owner) {
        (self.engine.guards(), self.me())
    }

    /// What the presets say about a path.
    pub fn decide(&self, path: &Path) -> Manage {
        let ask = || policy::decide(self.engine.shm(), path.as_os_str().as_bytes());
        let known = ask().or_else(|| (self.discover)(path).then(ask).flatten());
        known.map_or(Manage::Bypass, |(_, manage)| manage)
    }

    /// Asks that the file behind `fd`, at `path`, be managed.
    pub fn register(&self, fd: BorrowedFd<'_>, path: Option<&Path>) -> Course {
        self.joined.register(fd, path.is_some_and(|path| self.is_atomic(path)))
    }

    /// True if files at this path are under policy `atomic`.
    pub fn is_atomic(&self, path: &Path) -> bool {
        let shm = self.engine.shm();
        let decided = policy::decide(shm, path.as_os_str().as_bytes());
        decided.is_some_and(|decided| policy::is_atomic(shm, decided))
    }
}
