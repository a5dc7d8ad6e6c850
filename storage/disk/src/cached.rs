//! The block cache, as a disk uses it: what is remembered of the image, and where a read's blocks come from. The steps are all
//! fronts': `seawall_cache::front`.
//!
//! A guest has a page cache of its own: what it asks for, it has not. So the block cache is asked first, then the image's page cache,
//! then its disk.

use std::cell::RefCell;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use seawall_cache::front::change::{self, Inode, Opened, Span};
use seawall_cache::front::reader::{self, Looked, Missed, Reader};
use seawall_cache::front::sequential::Stream;
use seawall_cache::front::word::{Reads, Word, mark};
use seawall_cache::shared::{Cache, CachedFile, OperationOwner, Version};
use seawall_core::Errno;
use seawall_front::{Blocks, Joined};

use crate::memory::Slice;

thread_local! {
    /// Blocks on their way to the guest's memory, which may change under whoever reads it.
    static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What is remembered of an image.
pub struct Cached {
    inode: Inode,
    word: AtomicU64,
    stream: Stream,
}

/// A read of a guest's.
pub struct Read<'a> {
    /// The image.
    pub file: &'a File,
    /// Where in it.
    pub at: u64,
    /// The guest's memory.
    pub into: &'a [Slice<'a>],
    /// Nothing is waited for.
    pub at_once: bool,
}

impl Read<'_> {
    fn len(&self) -> usize {
        self.into.iter().map(|slice| slice.len()).sum()
    }

    /// The guest gets what was read.
    fn give(&self, mut bytes: &[u8]) {
        for slice in self.into {
            let (now, later) = bytes.split_at(slice.len());
            slice.copy_from(now);
            bytes = later;
        }
    }
}

/// An image, as the cache's stages see it.
struct Open<'a> {
    cached: &'a Cached,
    joined: &'a Joined,
}

impl Opened for Open<'_> {
    fn word(&self, cache: &Cache) -> Word {
        let known = Word::from_bits(self.cached.word.load(Relaxed));
        if known != Word::UNKNOWN {
            return known;
        }
        let (dev, ino) = self.cached.inode;
        let word = Word::plain(cache.cell(dev, ino), Version::default(), mark::READS | mark::WRITES);
        self.remember(word);
        word
    }

    fn remember(&self, word: Word) {
        self.cached.word.store(word.bits(), Relaxed);
    }

    fn inode(&self) -> Option<Inode> {
        Some(self.cached.inode)
    }

    fn who(&self) -> Option<OperationOwner> {
        self.joined.owner()
    }
}

impl Cached {
    /// Of an image that nobody asked for yet.
    pub fn new(inode: Inode) -> Self {
        Self { inode, word: AtomicU64::new(0), stream: Stream::new() }
    }

    /// Runs a change of these bytes.
    pub fn changing<R>(&self, joined: Option<&Joined>, from: u64, len: u64, op: impl FnOnce() -> R) -> R {
        match self.open(joined) {
            None => op(),
            Some((cache, open)) => change::write(cache, &open, || Span::Bytes { from, len }, op),
        }
    }

    fn open<'a>(&'a self, joined: Option<&'a Joined>) -> Option<(&'a Cache, Open<'a>)> {
        let joined = joined?;
        Some((joined.cache.as_ref()?, Open { cached: self, joined }))
    }

    /// Runs a real sync.
    ///
    /// # Errors
    /// What it says.
    pub fn syncing(
        &self,
        joined: Option<&Joined>,
        op: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        match self.open(joined) {
            None => op(),
            Some((cache, open)) => change::sync(cache, &open, op),
        }
    }

    /// Carries a read out, all of it, through the cache. False: this read is not for the cache.
    ///
    /// # Errors
    /// The disk's; EIO if the image has become shorter; AGAIN if something is to be waited for.
    pub fn read(&self, joined: Option<&Joined>, read: &Read<'_>) -> Result<bool, Errno> {
        let Some((cache, open)) = self.open(joined).filter(|_| reader::may_be(read.at, read.len())) else {
            return Ok(false);
        };
        let mut word = open.word(cache);
        if word.reads() == Reads::Ask {
            if read.at_once {
                return Err(Errno::AGAIN);
            }
            word = word.answered(open.joined.enter(read.file.as_fd()));
            open.remember(word);
        }
        match word.reads() {
            Reads::Through(entered) => self.by_blocks(&open, cache, entered, read),
            Reads::Pauses(shorter) => {
                open.remember(shorter);
                Ok(false)
            }
            Reads::Ask | Reads::Not => Ok(false),
        }
    }

    fn by_blocks(
        &self,
        open: &Open<'_>,
        cache: &Cache,
        entered: CachedFile,
        read: &Read<'_>,
    ) -> Result<bool, Errno> {
        let len = read.len();
        let (Some(run), Some(who)) = (reader::blocks(cache, read.at, len), open.who()) else {
            return Ok(false);
        };
        let size = cache.layout().block_bytes;
        // What must wait comes a second time.
        let is_stream = match read.at_once {
            true => self.stream.note(run.first, run.count as u32, size.into()),
            false => self.stream.is_one(size.into()),
        };
        let reader = Reader { cache, who, file: entered, run, is_stream };
        if read.at_once && reader.is_stored() {
            return Err(Errno::AGAIN);
        }
        ROOM.with_borrow_mut(|room| {
            room.resize(len, 0);
            let is_read = fill(&reader, open, read, room)?;
            if is_read {
                read.give(room);
            }
            Ok(is_read)
        })
    }
}

/// Reads all of it into `room`: from the cache, then from the page cache, then from its disk. False: this read is not for the cache.
fn fill(reader: &Reader<'_>, open: &Open<'_>, read: &Read<'_>, room: &mut [u8]) -> Result<bool, Errno> {
    let len = room.len();
    let (fd, offset, size) = (read.file.as_fd(), read.at, reader.cache.layout().block_bytes as usize);
    let mut blocks = Blocks { joined: open.joined, fd, offset, size, into: room };
    let mut missed = Missed::NOTHING;
    match reader.look(&mut missed, &mut blocks) {
        Looked::All => {}
        Looked::Only(_) => {
            // A file that was forgotten is asked for again.
            if !reader.cache.knows(reader.file) {
                open.remember(Word::UNKNOWN);
            }
            return Ok(false);
        }
        Looked::Some => {
            let rest = reader.without_waiting(&missed, &mut blocks);
            if read.at_once && !missed.is_there(rest) {
                return Err(Errno::AGAIN);
            }
            if reader.disk(&missed, rest, &mut blocks)? < len {
                return Err(Errno::IO);
            }
        }
    }
    Ok(true)
}
