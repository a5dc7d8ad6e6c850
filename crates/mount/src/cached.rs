//! The block cache, as the mount uses it: what is remembered of a node, who is calling, and where a read's blocks come
//! from. The steps are all fronts': `seawall_cache::front`.
//!
//! The kernel's cache of the mount comes first: what it has is not asked for. What it asks us for is looked for in the
//! block cache, then in the backing file's page cache, then on the disk. Whatever changes a file comes through us, a store
//! into a mapping too before anybody but the mount's users can see it: so it is announced like a preloaded process's.
//!
//! A file that the kernel reads and writes past us would be written unseen. So with a cache none is: the files that no
//! preset logs, which would be those, are what the cache is for.

use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use rustix::fs::{Advice, FileType, Stat, fadvise};
use rustix::io::{ReadWriteFlags, pread, preadv2};
use seawall_cache::front::change::{self, Inode, Opened, Span};
use seawall_cache::front::reader::{How, Source};
use seawall_cache::front::word::{Word, mark};
use seawall_cache::shared::{Cache, OperationOwner, Version};
use seawall_core::Errno;
use seawall_stats::{Class, Event};

use crate::log::Log;
use crate::node::Node;

impl Log {
    /// The calling thread, as an owner of the zone's operations: by this the daemon tells whether it lives.
    fn owner(&self) -> Option<OperationOwner> {
        let generation = self.engine.shm().client(self.slot())?.generation().load(Acquire);
        Some(OperationOwner::of_client(self.slot(), generation, self.thread()))
    }

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

    /// The calling thread, as a reader.
    pub fn reader(&self) -> Option<OperationOwner> {
        self.owner()
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

/// The blocks of a read, in one piece of memory.
pub struct Blocks<'a> {
    /// Where the waits are counted.
    pub log: &'a Log,
    /// The backing file.
    pub fd: BorrowedFd<'a>,
    /// Where in it the read begins.
    pub offset: u64,
    /// Bytes of a block.
    pub size: usize,
    /// All of them.
    pub into: &'a mut [u8],
}

impl Source for Blocks<'_> {
    type Error = Errno;

    fn block(&mut self, i: usize) -> &mut [u8] {
        &mut self.into[i * self.size..][..self.size]
    }

    fn kernel(&mut self, from: usize, to: usize, how: How) -> Result<usize, Errno> {
        let (begin, end) = (from * self.size, to * self.size);
        let (fd, offset) = (self.fd, self.offset + begin as u64);
        fill(&mut self.into[begin..end], |rest, got| {
            let at = offset + got as u64;
            match how {
                How::Wait => pread(fd, rest, at),
                How::NoWait => preadv2(fd, &mut [IoSliceMut::new(rest)], at, ReadWriteFlags::NOWAIT),
            }
        })
    }

    fn give_up(&self, from: usize, to: usize) {
        let (offset, len) = (self.offset + (from * self.size) as u64, (to - from) * self.size);
        let _ = fadvise(self.fd, offset, NonZeroU64::new(len as u64), Advice::DontNeed);
    }

    fn ns(&self, ticks: u64) -> u64 {
        self.log.engine.shm().header().clock().ns(ticks)
    }

    fn record(&self, event: Event, class: Class, ns: u64, count: usize) {
        let shm = self.log.engine.shm();
        let stats = shm.stats(self.log.thread() % shm.shape().lanes);
        (0..count).for_each(|_| stats.record_shared(event, class, ns));
    }
}

/// Fills `into` as far as the file goes: a short answer would be taken for its end.
pub fn fill(
    into: &mut [u8],
    mut read: impl FnMut(&mut [u8], usize) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let mut got = 0;
    while got < into.len() {
        match read(&mut into[got..], got) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(Errno::INTR) => {}
            Err(_) if got > 0 => break,
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}
