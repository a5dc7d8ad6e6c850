//! The block cache, as the mount uses it: what is remembered of a node, who is calling, and where a read's blocks come
//! from. The steps are all fronts': `seawall_cache::front`.
//!
//! The kernel's cache of the mount comes first: what it has is not asked for. What it asks us for is looked for in the
//! block cache, then in the backing file's page cache, then on the disk. Whatever changes a file comes through us, a store
//! into a mapping too before anybody but the mount's users can see it: so it is announced like a preloaded process's.
//!
//! A file that the kernel reads and writes past us would be written unseen. So with a cache none is: the files that no
//! preset logs, which would be those, are what the cache is for.

use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{FileType, Stat};
use seawall_cache::front::change::{self, Inode, Opened, Span};
use seawall_cache::front::word::{Word, mark};
use seawall_cache::shared::{Cache, OperationOwner, Version};

use crate::log::Log;
use crate::node::Node;

impl Log {
    /// Runs a write to a node, or any other change of its content.
    pub fn changing<R>(&self, node: &Node, span: Span, op: impl FnOnce() -> R) -> R {
        node.changes.run(|| match &self.cache {
            None => op(),
            Some(cache) => change::write(cache, &Open { node, log: self }, || span, op),
        })
    }

    /// Runs what ends the file that was looked at: its last name may go.
    pub fn ending<R>(&self, file: Option<&Stat>, op: impl FnOnce() -> R) -> R {
        let regular = |stat: &&Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        match (&self.cache, file.filter(regular)) {
            (Some(cache), Some(stat)) => {
                change::change(cache, (stat.st_dev, stat.st_ino), || self.owner(), op)
            }
            _ => op(),
        }
    }

    /// Runs a real sync of a node.
    pub fn syncing<E>(&self, node: &Node, op: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        match &self.cache {
            None => op(),
            Some(cache) => change::sync(cache, &Open { node, log: self }, op),
        }
    }

    /// What is remembered of a node. Never unknown.
    pub fn word(&self, cache: &Cache, node: &Node) -> Word {
        Open { node, log: self }.word(cache)
    }
}

/// A node, as the cache's stages see it.
struct Open<'a> {
    node: &'a Node,
    log: &'a Log,
}

impl Opened for Open<'_> {
    fn word(&self, cache: &Cache) -> Word {
        let known = Word::from_bits(self.node.cached.load(Relaxed));
        if known != Word::UNKNOWN {
            return known;
        }
        let word = match self.node.kind {
            FileType::RegularFile => {
                let cell = cache.cell(self.node.dev, self.node.ino);
                Word::plain(cell, Version::default(), mark::READS | mark::WRITES)
            }
            _ => Word::OTHER,
        };
        self.remember(word);
        word
    }

    fn remember(&self, word: Word) {
        self.node.remember(word);
    }

    fn inode(&self) -> Option<Inode> {
        Some((self.node.dev, self.node.ino))
    }

    fn who(&self) -> Option<OperationOwner> {
        self.log.owner()
    }
}
