//! What the operations share: the parts of a mount, put together.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use seawall_core::certain;
use seawall_core::directory::Synced;
use seawall_daemon::workers::Workers;

use crate::class::Managed;
use crate::handle::Handles;
use crate::log::Log;
use crate::node::{Node, Nodes};
use crate::pages::Pages;

/// Threads for what may take long, at most.
const THREADS: usize = 256;
/// The stack of each.
const STACK: usize = 2 << 20;

/// Everything the operations share.
pub struct Fs {
    /// The log.
    pub log: Log,
    /// Inodes the kernel knows.
    pub nodes: Nodes,
    /// Open files.
    pub handles: Handles,
    /// Directories that need no sync.
    pub synced: Synced,
    /// Threads for what may take long.
    pub workers: Workers,
    /// The kernel may read and write unmanaged files without us.
    pub passthrough: AtomicBool,
    /// We may have the kernel write past its cache.
    pub direct: AtomicBool,
    /// Pages that it has nevertheless.
    pub pages: Pages,
    /// What the mount was made with.
    pub device: OnceLock<Arc<OwnedFd>>,
    /// Requests are to come by io_uring, if the kernel lets them.
    pub by_uring: AtomicBool,
}

impl Fs {
    /// On a backing directory.
    pub fn new(log: Log, nodes: Nodes) -> Arc<Self> {
        Arc::new(Self {
            log,
            nodes,
            handles: Handles::default(),
            synced: Synced::new(),
            workers: Workers::new("slow", STACK, THREADS),
            passthrough: AtomicBool::new(false),
            direct: AtomicBool::new(false),
            pages: Pages::default(),
            device: OnceLock::new(),
            by_uring: AtomicBool::new(false),
        })
    }

    /// A change that logged data cannot stand for: the file's next fsync is real, from before it until after it.
    pub(super) fn disturbing<R>(&self, node: &Node, op: impl FnOnce() -> R) -> R {
        let file = self.log.engine.find(node.dev, node.ino);
        file.inspect(|file| self.log.engine.disturb(*file));
        let done = op();
        file.inspect(|file| self.log.engine.disturb(*file));
        done
    }

    /// Any other change of a managed file's content: out of the log, then `op`.
    pub(super) fn pass<R>(&self, managed: &Managed, op: impl FnOnce() -> R) -> R {
        let sync = || certain::fdatasync(managed.fd());
        let out = self.log.engine.take_out(self.log.me(), managed.file, sync);
        let done = op();
        out.finish(sync);
        done
    }
}
