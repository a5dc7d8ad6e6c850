//! Inodes that the kernel knows: one O_PATH descriptor each, under the backing's own inode number.
//!
//! Invariant: as long as the kernel may name a node we hold its descriptor, so its number is not used again, by
//! whatever name or none the file is reached. A node is let go when the kernel has forgotten it as often as it
//! got it from us.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use fuser::INodeNo;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, open, openat, readlinkat};
use seawall_cache::front::word::Word;
use seawall_core::Errno;
use seawall_media::locks::lock;

use crate::class::Class;
use crate::guards::Guards;
use crate::held::Held;
use crate::passing::Passed;
use crate::seen::{Changes, Seen};

const SHARDS: usize = 16;
const SUID_OR_SGID: u32 = 0o6000;

/// One inode.
pub struct Node {
    /// Of the backing file system.
    pub ino: u64,
    /// Of the backing file system.
    pub dev: u64,
    /// Its type never changes.
    pub kind: FileType,
    /// How the kernel calls it.
    pub number: INodeNo,
    path: OwnedFd,
    /// Whether its writes are logged.
    pub class: RwLock<Class>,
    /// How it is open.
    pub opens: Mutex<Opens>,
    /// What is remembered of it for the block cache: a [`Word`].
    pub cached: AtomicU64,
    /// It may have set-user-id or set-group-id bits, which a write takes away.
    privileged: AtomicBool,
    /// What the kernel may have in its cache of it.
    pub pages: Held,
    /// Changes of its content or its times by us.
    pub changes: Changes,
}

/// How an inode is open. The kernel has one way for all descriptors of an inode.
#[derive(Default)]
pub struct Opens {
    /// Descriptors.
    pub count: usize,
    /// Reads and writes go past us while any of these is open.
    pub passthrough: Option<Arc<Passed>>,
    /// Reads and writes go past the kernel's cache while any of these is open.
    pub direct: bool,
    /// What an open last saw of the backing file.
    pub seen: Option<Seen>,
}

impl Node {
    fn new(path: OwnedFd, stat: &Stat, number: INodeNo) -> Self {
        let node = Self {
            ino: stat.st_ino,
            dev: stat.st_dev,
            kind: FileType::from_raw_mode(stat.st_mode),
            number,
            path,
            class: RwLock::default(),
            opens: Mutex::default(),
            cached: AtomicU64::new(Word::UNKNOWN.bits()),
            privileged: AtomicBool::new(false),
            pages: Held::default(),
            changes: Changes::default(),
        };
        node.note_mode(stat.st_mode);
        node
    }

    /// The descriptor to reach it by.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.path.as_fd()
    }

    /// A path that leads to this inode whatever its name is.
    pub fn proc_path(&self) -> String {
        format!("/proc/self/fd/{}", self.path.as_raw_fd())
    }

    /// Opens it.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        open(self.proc_path(), flags | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())
    }

    /// What the backing file system says of it.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn stat(&self) -> Result<Stat, Errno> {
        let stat = rustix::fs::fstat(&self.path)?;
        self.note_mode(stat.st_mode);
        Ok(stat)
    }

    fn note_mode(&self, mode: u32) {
        self.privileged.store(mode & SUID_OR_SGID != 0, Relaxed);
    }

    /// True if a write has bits to take away.
    pub fn is_privileged(&self) -> bool {
        self.privileged.load(Relaxed)
    }

    /// Remembers for the block cache.
    pub fn remember(&self, word: Word) {
        self.cached.store(word.bits(), Relaxed);
    }

    /// Its present name in the backing file system; `None` if it has none any more.
    pub fn name(&self) -> Option<PathBuf> {
        let link = readlinkat(CWD, self.proc_path(), Vec::new()).ok()?;
        let path = PathBuf::from(OsStr::from_bytes(link.as_bytes()));
        let found = rustix::fs::statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        // A name that ends in " (deleted)" may be a true one, or the kernel's remark.
        ((found.st_dev, found.st_ino) == (self.dev, self.ino)).then_some(path)
    }
}

struct Known {
    node: Arc<Node>,
    lookups: u64,
}

/// All nodes.
pub struct Nodes {
    shards: [Mutex<HashMap<u64, Known>>; SHARDS],
    root: Arc<Node>,
    /// Changes when a directory gets another name: what was decided by names below it is decided anew.
    pub names: AtomicU64,
    /// Names stand still while they are used.
    pub guards: Guards,
}

impl Nodes {
    /// Below this directory.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn new(root: &std::path::Path) -> Result<Self, Errno> {
        let path = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let stat = rustix::fs::fstat(&path)?;
        let root = Arc::new(Node::new(path, &stat, INodeNo::ROOT));
        Ok(Self { shards: Default::default(), root, names: AtomicU64::new(0), guards: Guards::default() })
    }

    /// The mounted directory itself.
    pub fn root(&self) -> &Arc<Node> {
        &self.root
    }

    fn shard(&self, ino: u64) -> MutexGuard<'_, HashMap<u64, Known>> {
        lock(&self.shards[ino as usize % SHARDS])
    }

    /// The node that the kernel calls so.
    ///
    /// # Errors
    /// ESTALE for one it was not told of.
    pub fn get(&self, number: INodeNo) -> Result<Arc<Node>, Errno> {
        if number == INodeNo::ROOT {
            return Ok(Arc::clone(&self.root));
        }
        self.shard(number.0).get(&number.0).map(|known| Arc::clone(&known.node)).ok_or(Errno::STALE)
    }

    /// The node of an inode, if the kernel knows it.
    pub fn known(&self, ino: u64) -> Option<Arc<Node>> {
        self.shard(ino).get(&ino).map(|known| Arc::clone(&known.node))
    }

    /// Looks `name` up, for an answer that tells the kernel of it.
    ///
    /// # Errors
    /// What the backing file system says; EXDEV for another file system mounted below the backing directory,
    /// whose inode numbers could be taken for this one's.
    pub fn look_up(&self, parent: &Node, name: &OsStr) -> Result<(Arc<Node>, Stat), Errno> {
        let path =
            openat(parent.fd(), name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        self.meet(path)
    }

    /// The same of a file that is open.
    ///
    /// # Errors
    /// As for [`look_up`](Self::look_up).
    pub fn meet(&self, path: OwnedFd) -> Result<(Arc<Node>, Stat), Errno> {
        let stat = rustix::fs::fstat(&path)?;
        if stat.st_dev != self.root.dev {
            return Err(Errno::XDEV);
        }
        if stat.st_ino == self.root.ino {
            return Ok((Arc::clone(&self.root), stat));
        }
        let mut shard = self.shard(stat.st_ino);
        let known = shard.entry(stat.st_ino).or_insert_with(|| Known {
            node: Arc::new(Node::new(path, &stat, INodeNo(stat.st_ino))),
            lookups: 0,
        });
        known.lookups += 1;
        known.node.note_mode(stat.st_mode);
        Ok((Arc::clone(&known.node), stat))
    }

    /// The kernel forgets a node as often as this.
    pub fn forget(&self, number: INodeNo, times: u64) {
        let mut shard = self.shard(number.0);
        let gone = shard.get_mut(&number.0).is_some_and(|known| {
            known.lookups = known.lookups.saturating_sub(times);
            known.lookups == 0
        });
        if gone {
            let known = shard.remove(&number.0);
            drop(shard);
            drop(known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_lives_until_it_is_forgotten_as_often_as_it_was_named() {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        std::fs::write(dir.path().join("a"), "x").expect("written");
        std::fs::hard_link(dir.path().join("a"), dir.path().join("b")).expect("linked");
        let nodes = Nodes::new(dir.path()).expect("opened");
        let (a, stat) = nodes.look_up(nodes.root(), OsStr::new("a")).expect("found");
        let (b, _) = nodes.look_up(nodes.root(), OsStr::new("b")).expect("found");
        assert!(Arc::ptr_eq(&a, &b), "two names, one node");
        assert_eq!(a.number.0, stat.st_ino);
        nodes.forget(a.number, 1);
        assert!(nodes.get(a.number).is_ok());
        std::fs::remove_file(dir.path().join("a")).expect("removed");
        std::fs::remove_file(dir.path().join("b")).expect("removed");
        assert_eq!(a.stat().expect("it is still there").st_nlink, 0);
        assert_eq!(a.name(), None);
        nodes.forget(a.number, 1);
        assert!(nodes.get(a.number).is_err());
    }
}
