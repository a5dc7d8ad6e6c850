//! read: of what the kernel's cache of the mount has not.
//!
//! ```text
//! block cache ─ page cache of the backing file, without waiting ─┐ on the thread that read the request
//!                                                                ▼
//!                the daemon, if it is to be asked ─ the cache's disk ─ the disk      on another
//! ```

use std::os::fd::AsFd;

use rustix::io::{ReadWriteFlags, pread, preadv2};
use seawall_cache::front::reader::{self as front, Looked, Missed, Reader, Rest};
use seawall_cache::front::word::{Reads, Word};
use seawall_cache::shared::{Cache, CachedFile};
use seawall_core::Errno;
use seawall_front::{Blocks, fill};

use super::Fs;
use crate::handle::Handle;

/// What is left of a read for a thread that may wait.
pub enum Left {
    /// All of it.
    All,
    /// All of it, and the daemon is to be asked whether the file is served from the block cache.
    Ask(Word),
    /// All of it, and some is in a block cache on a disk. True for a read that is part of a stream.
    Stored(bool),
    /// Some blocks.
    Blocks(Box<Pending>),
}

/// A read of which some blocks are there.
pub struct Pending {
    file: CachedFile,
    is_stream: bool,
    missed: Missed,
    rest: Rest,
    into: Vec<u8>,
}

impl Fs {
    /// read(2), if it need not wait: fills `into` as far as the file goes.
    ///
    /// # Errors
    /// What is left to do, by [`read_rest`](Self::read_rest).
    pub fn read_quickly(
        &self,
        handle: &Handle,
        offset: u64,
        into: &mut [u8],
    ) -> Result<Result<usize, Errno>, Left> {
        if let Some(cache) = self.log.cache.as_ref().filter(|_| front::may_be(offset, into.len())) {
            let word = self.log.word(cache, &handle.node);
            match word.reads() {
                Reads::Through(file) => {
                    if let Some(done) = self.look(cache, file, handle, offset, into) {
                        return done;
                    }
                }
                Reads::Ask => return Err(Left::Ask(word)),
                Reads::Pauses(shorter) => handle.node.remember(shorter),
                Reads::Not => {}
            }
        }
        self.in_memory(handle, offset, into).ok_or(Left::All)
    }

    /// By the block cache. `None`: it has nothing to do with this read.
    fn look(
        &self,
        cache: &Cache,
        file: CachedFile,
        handle: &Handle,
        offset: u64,
        into: &mut [u8],
    ) -> Option<Result<Result<usize, Errno>, Left>> {
        let run = front::blocks(cache, offset, into.len())?;
        let size = cache.layout().block_bytes;
        let is_stream = handle.stream.note(run.first, run.count as u32, size.into());
        let reader = Reader { cache, who: self.log.owner()?, file, run, is_stream };
        if reader.is_stored() {
            return Some(Err(Left::Stored(is_stream)));
        }
        let mut blocks = self.blocks(cache, handle, offset, &mut *into);
        let mut missed = Missed::NOTHING;
        match reader.look(&mut missed, &mut blocks) {
            Looked::All => return Some(Ok(Ok(reader.len()))),
            Looked::Only(_) => {
                // A file that was forgotten is asked for again.
                if !cache.knows(file) {
                    handle.node.remember(Word::UNKNOWN);
                }
                return None;
            }
            Looked::Some => {}
        }
        let rest = reader.without_waiting(&missed, &mut blocks);
        if missed.is_there(rest) {
            return Some(Ok(reader.disk(&missed, rest, &mut blocks)));
        }
        let into = into.to_vec();
        Some(Err(Left::Blocks(Box::new(Pending { file, is_stream, missed, rest, into }))))
    }

    /// Where the blocks of a read into `into` come from.
    fn blocks<'a>(
        &'a self,
        cache: &Cache,
        handle: &'a Handle,
        offset: u64,
        into: &'a mut [u8],
    ) -> Blocks<'a> {
        let size = cache.layout().block_bytes as usize;
        Blocks { joined: &self.log, fd: handle.fd.as_fd(), offset, size, into }
    }

    /// From the backing file's page cache.
    fn in_memory(&self, handle: &Handle, offset: u64, into: &mut [u8]) -> Option<Result<usize, Errno>> {
        let mut waits = false;
        let done = fill(into, |rest, got| {
            let vector = &mut [std::io::IoSliceMut::new(rest)];
            let read = preadv2(&handle.fd, vector, offset + got as u64, ReadWriteFlags::NOWAIT);
            // Some of it is there, the rest is not; or the file system cannot say.
            waits |= matches!(read, Err(Errno::AGAIN | Errno::OPNOTSUPP));
            read
        });
        (!waits).then_some(done)
    }

    /// What is left of a read of `len` bytes: what was read, and how much of it counts.
    pub fn read_rest(
        &self,
        handle: &Handle,
        offset: u64,
        len: usize,
        left: Left,
    ) -> (Vec<u8>, Result<usize, Errno>) {
        let mut into = match left {
            Left::Blocks(pending) => return self.by_disk(handle, offset, *pending),
            Left::Stored(is_stream) => {
                let mut into = vec![0; len];
                if let Some(done) = self.stored(handle, offset, is_stream, &mut into) {
                    return (into, done);
                }
                into
            }
            Left::Ask(word) => {
                handle.node.remember(word.answered(self.log.enter(handle.fd.as_fd())));
                let mut into = vec![0; len];
                match self.read_quickly(handle, offset, &mut into) {
                    Ok(done) => return (into, done),
                    // The daemon is asked once.
                    Err(Left::All | Left::Ask(_)) => into,
                    Err(left) => return self.read_rest(handle, offset, len, left),
                }
            }
            Left::All => vec![0; len],
        };
        let done = fill(&mut into, |rest, got| pread(&handle.fd, rest, offset + got as u64));
        (into, done)
    }

    /// By a block cache on a disk, as far as it has the blocks. `None`: it has nothing to do with this read any more.
    fn stored(
        &self,
        handle: &Handle,
        offset: u64,
        is_stream: bool,
        into: &mut [u8],
    ) -> Option<Result<usize, Errno>> {
        let cache = self.log.cache.as_ref()?;
        let run = front::blocks(cache, offset, into.len())?;
        let Reads::Through(file) = self.log.word(cache, &handle.node).reads() else { return None };
        let reader = Reader { cache, who: self.log.owner()?, file, run, is_stream };
        let mut blocks = self.blocks(cache, handle, offset, into);
        let mut missed = Missed::NOTHING;
        match reader.look(&mut missed, &mut blocks) {
            Looked::All => Some(Ok(reader.len())),
            Looked::Only(_) => None,
            Looked::Some => {
                let rest = reader.without_waiting(&missed, &mut blocks);
                Some(reader.disk(&missed, rest, &mut blocks))
            }
        }
    }

    fn by_disk(
        &self,
        handle: &Handle,
        offset: u64,
        Pending { file, is_stream, missed, rest, mut into }: Pending,
    ) -> (Vec<u8>, Result<usize, Errno>) {
        let found = self.log.cache.as_ref().and_then(|cache| {
            let run = front::blocks(cache, offset, into.len())?;
            Some(Reader { cache, who: self.log.owner()?, file, run, is_stream })
        });
        let done = match found {
            Some(reader) => {
                let mut blocks = self.blocks(reader.cache, handle, offset, &mut into);
                reader.disk(&missed, rest, &mut blocks)
            }
            None => fill(&mut into, |rest, got| pread(&handle.fd, rest, offset + got as u64)),
        };
        (into, done)
    }
}
