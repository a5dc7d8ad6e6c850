//! The kernel's ways to change a file.

use std::ffi::c_int;
use std::sync::PoisonError;

use libc::{O_DIRECT, O_DSYNC, O_RDWR, O_TRUNC};

use super::files::{Files, LENGTH, Mapping, Paths, Pipe, all, said};
use super::memory::{BLOCK, BLOCKS, Memory};
use super::model::Model;
use crate::aio::{self, Aio};
use crate::uring::{self, Uring};
use fastrand::Rng;

ways! {
    Buffered,
    Direct,
    Synced,
    DirectSynced,
    Aio,
    Uring,
    BufferedUring,
    Stored,
    Spliced,
    Sent,
    Copied,
    Truncated,
    TruncatedByOpen,
    Punched,
    Zeroed,
    /// Through the directory behind the mount.
    Behind,
}

const LONGEST: usize = 24;

impl Way {
    fn zeros(self) -> bool {
        matches!(self, Way::Truncated | Way::TruncatedByOpen | Way::Punched | Way::Zeroed)
    }

    /// Some blocks.
    fn span(self, random: &mut Rng) -> (usize, usize) {
        let first = random.usize(..BLOCKS);
        match self {
            Way::TruncatedByOpen => (0, BLOCKS),
            Way::Truncated => (first, BLOCKS - first),
            // Now and then all of it, as the field's programs do.
            _ if random.u64(..8) == 0 => (0, BLOCKS),
            _ => (first, (1 + random.usize(..LONGEST)).min(BLOCKS - first)),
        }
    }
}

/// A thread that writes.
pub struct Writer<'p> {
    paths: &'p Paths,
    random: Rng,
    buffered: Files,
    direct: Files,
    synced: Files,
    direct_synced: Files,
    mapping: Mapping,
    source: Files,
    behind: Option<Files>,
    pipe: Pipe,
    aio: Aio,
    uring: Uring,
    memory: Memory,
}

impl<'p> Writer<'p> {
    /// With descriptors of its own.
    pub fn new(paths: &'p Paths, i: u64, random: Rng) -> Result<Writer<'p>, String> {
        let open = |flags| Files::open(&paths.file, O_RDWR | flags);
        let buffered = open(0)?;
        Ok(Writer {
            random,
            direct: open(O_DIRECT)?,
            synced: open(O_DSYNC)?,
            direct_synced: open(O_DIRECT | O_DSYNC)?,
            mapping: Mapping::new(&buffered, libc::PROT_READ | libc::PROT_WRITE)?,
            buffered,
            source: Files::aside(&paths.side(&format!("source{i}")))?,
            behind: paths.behind.as_ref().map(|path| Files::open(path, O_RDWR)).transpose()?,
            pipe: Pipe::new()?,
            aio: Aio::new().ok_or("no libaio")?,
            uring: Uring::new().ok_or("no io_uring")?,
            memory: Memory::new(),
            paths,
        })
    }

    /// Changes something.
    pub fn write(&mut self, ways: [Way; 2], model: &Model) -> Result<(), String> {
        let way = ways[self.random.usize(..2)];
        let (first, count) = way.span(&mut self.random);
        let shorter = matches!(way, Way::Truncated | Way::TruncatedByOpen)
            .then(|| model.shorter.write().unwrap_or_else(PoisonError::into_inner));
        let longer =
            (way == Way::Stored).then(|| model.shorter.read().unwrap_or_else(PoisonError::into_inner));
        let change = model.change(first, count, way.zeros());
        self.memory.fill(change.version, count);
        self.by(way, first * BLOCK, count * BLOCK).map_err(|what| format!("{way:?}: {what}"))?;
        change.acknowledge(way == Way::Behind);
        drop((shorter, longer));
        Ok(())
    }

    fn by(&mut self, way: Way, offset: usize, length: usize) -> Result<(), String> {
        let bytes = &self.memory.bytes()[..length];
        let fd = self.buffered.fd();
        match way {
            Way::Buffered => self.buffered.write(bytes, offset),
            Way::Direct => self.direct.write(bytes, offset),
            Way::Synced => self.synced.write(bytes, offset),
            Way::DirectSynced => self.direct_synced.write(bytes, offset),
            Way::Behind => self.behind.as_ref().expect("there is one").write(bytes, offset),
            Way::Aio => self.by_aio(bytes, offset),
            Way::Uring => self.by_uring(self.direct.fd(), bytes, offset),
            Way::BufferedUring => self.by_uring(fd, bytes, offset),
            Way::Stored => self.mapping.store(bytes, offset),
            Way::Spliced => self.by_splice(bytes, offset),
            Way::Sent => self.by_sendfile(bytes, offset),
            Way::Copied => self.by_copy(bytes, offset),
            Way::Truncated => {
                self.truncate(offset)?;
                self.truncate(LENGTH)
            }
            Way::TruncatedByOpen => {
                drop(Files::open(&self.paths.file, O_RDWR | O_TRUNC)?);
                self.truncate(LENGTH)
            }
            Way::Punched => {
                self.allocate(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, offset, length)
            }
            Way::Zeroed => self.allocate(libc::FALLOC_FL_ZERO_RANGE, offset, length),
        }
    }

    fn truncate(&self, length: usize) -> Result<(), String> {
        // SAFETY: plain call.
        said("ftruncate", unsafe { libc::ftruncate(self.buffered.fd(), length as i64) }.into()).map(drop)
    }

    fn allocate(&self, mode: c_int, offset: usize, length: usize) -> Result<(), String> {
        // SAFETY: plain call.
        let done = unsafe { libc::fallocate(self.buffered.fd(), mode, offset as i64, length as i64) };
        said("fallocate", done.into()).map(drop)
    }

    /// Several requests at once.
    fn by_aio(&self, bytes: &[u8], offset: usize) -> Result<(), String> {
        let part = bytes.len().div_ceil(8).next_multiple_of(BLOCK);
        let mut blocks: Vec<_> = bytes
            .chunks(part)
            .enumerate()
            .map(|(i, chunk)| {
                let (at, length) = (chunk.as_ptr() as u64, chunk.len() as u64);
                aio::block(aio::PWRITE, self.direct.fd(), at, length, (offset + i * part) as i64)
            })
            .collect();
        all("libaio", bytes.len(), self.aio.submit_all(&mut blocks))
    }

    fn by_uring(&self, fd: c_int, bytes: &[u8], offset: usize) -> Result<(), String> {
        let done = self.uring.run(uring::entry(uring::WRITE, fd, bytes, offset as u64));
        all("io_uring", bytes.len(), done.into())
    }

    fn by_splice(&self, bytes: &[u8], offset: usize) -> Result<(), String> {
        let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let mut at = offset as i64;
        // SAFETY: the memory stays as it is until all has been taken out.
        unsafe {
            let put = libc::vmsplice(self.pipe.into.fd(), &raw const part, 1, 0) as i64;
            all("vmsplice", bytes.len(), put)?;
            let mut left = bytes.len();
            while left > 0 {
                let (from, to) = (self.pipe.out.fd(), self.buffered.fd());
                let moved = libc::splice(from, std::ptr::null_mut(), to, &raw mut at, left, 0) as i64;
                left -= said("splice", moved)?;
            }
        }
        Ok(())
    }

    fn by_sendfile(&self, bytes: &[u8], offset: usize) -> Result<(), String> {
        self.source.write(bytes, 0)?;
        let (mut from, mut left) = (0, bytes.len());
        // SAFETY: plain calls.
        unsafe {
            said("lseek", libc::lseek(self.buffered.fd(), offset as i64, libc::SEEK_SET))?;
            while left > 0 {
                let fd = self.buffered.fd();
                left -= said("sendfile", libc::sendfile(fd, self.source.fd(), &raw mut from, left) as i64)?;
            }
        }
        Ok(())
    }

    fn by_copy(&self, bytes: &[u8], offset: usize) -> Result<(), String> {
        self.source.write(bytes, 0)?;
        let (mut from, mut to, mut left) = (0, offset as i64, bytes.len());
        while left > 0 {
            let (source, fd) = (self.source.fd(), self.buffered.fd());
            // SAFETY: plain call.
            let copied =
                unsafe { libc::copy_file_range(source, &raw mut from, fd, &raw mut to, left, 0) as i64 };
            left -= said("copy_file_range", copied)?;
        }
        Ok(())
    }
}
