//! The kernel's ways to look at a file.

use std::ffi::c_int;
use std::sync::PoisonError;

use libc::{O_DIRECT, O_RDONLY};

use super::files::{Files, Mapping, Paths, Pipe, said};
use super::memory::{BLOCK, BLOCKS, Memory};
use super::model::Model;
use crate::aio::{self, Aio};
use crate::uring::{self, Uring};
use fastrand::Rng;

ways! {
    Buffered,
    Opened,
    Direct,
    Aio,
    Uring,
    BufferedUring,
    Mapped,
    MappedAnew,
    Spliced,
    Sent,
    Copied,
}

/// A thread that looks.
pub struct Looker<'p> {
    paths: &'p Paths,
    random: Rng,
    buffered: Files,
    direct: Files,
    mapping: Mapping,
    copy: Files,
    pipe: Pipe,
    aio: Aio,
    uring: Uring,
    memory: Memory,
}

impl<'p> Looker<'p> {
    /// With descriptors of its own.
    pub fn new(paths: &'p Paths, i: u64, random: Rng) -> Result<Looker<'p>, String> {
        let buffered = Files::open(&paths.file, O_RDONLY)?;
        Ok(Looker {
            random,
            direct: Files::open(&paths.file, O_RDONLY | O_DIRECT)?,
            mapping: Mapping::new(&buffered, libc::PROT_READ)?,
            buffered,
            copy: Files::aside(&paths.side(&format!("copy{i}")))?,
            pipe: Pipe::new()?,
            aio: Aio::new().ok_or("no libaio")?,
            uring: Uring::new().ok_or("no io_uring")?,
            memory: Memory::new(),
            paths,
        })
    }

    /// Looks at something.
    pub fn look(&mut self, ways: [Way; 2], model: &Model) -> Result<(), String> {
        let way = ways[self.random.usize(..2)];
        let first = self.random.usize(..BLOCKS);
        let count = match self.random.u64(..4) {
            0 => BLOCKS - first,
            _ => (1 + self.random.usize(..16)).min(BLOCKS - first),
        };
        self.look_at(way, first, count, model)
    }

    /// Looks at these blocks.
    pub fn look_at(&mut self, way: Way, first: usize, count: usize, model: &Model) -> Result<(), String> {
        let as_long = matches!(way, Way::Mapped | Way::MappedAnew)
            .then(|| model.shorter.read().unwrap_or_else(PoisonError::into_inner));
        let before = model.before(first, count, matches!(way, Way::Opened | Way::MappedAnew));
        let got = self.by(way, first * BLOCK, count * BLOCK).map_err(|what| format!("{way:?}: {what}"))?;
        drop(as_long);
        // Behind the file's end there are zeros, for those who make it longer.
        self.memory.bytes_mut()[got..count * BLOCK].fill(0);
        let found = &self.memory.bytes()[..count * BLOCK];
        model.check(&before, found).map_err(|what| format!("{way:?}: {what}"))
    }

    fn by(&mut self, way: Way, offset: usize, length: usize) -> Result<usize, String> {
        let into = &mut self.memory.bytes_mut()[..length];
        match way {
            Way::Buffered => self.buffered.read(into, offset),
            Way::Opened => Files::open(&self.paths.file, O_RDONLY)?.read(into, offset),
            Way::Direct => self.direct.read(into, offset),
            Way::Aio => by_aio(&self.aio, self.direct.fd(), into, offset),
            Way::Uring => by_uring(&self.uring, self.direct.fd(), into, offset),
            Way::BufferedUring => by_uring(&self.uring, self.buffered.fd(), into, offset),
            Way::Mapped => {
                self.mapping.load(into, offset);
                Ok(length)
            }
            Way::MappedAnew => {
                let file = Files::open(&self.paths.file, O_RDONLY)?;
                Mapping::new(&file, libc::PROT_READ)?.load(into, offset);
                Ok(length)
            }
            Way::Spliced => {
                let (fd, into_pipe, mut at) = (self.buffered.fd(), self.pipe.into.fd(), offset as i64);
                through(&self.pipe, into, |left| {
                    // SAFETY: plain call.
                    unsafe { libc::splice(fd, &raw mut at, into_pipe, std::ptr::null_mut(), left, 0) as i64 }
                })
            }
            Way::Sent => {
                let (fd, into_pipe, mut at) = (self.buffered.fd(), self.pipe.into.fd(), offset as i64);
                // SAFETY: plain call.
                through(&self.pipe, into, |left| unsafe {
                    libc::sendfile(into_pipe, fd, &raw mut at, left) as i64
                })
            }
            Way::Copied => by_copy(&self.buffered, &self.copy, into, offset),
        }
    }
}

fn by_aio(aio: &Aio, fd: c_int, into: &mut [u8], offset: usize) -> Result<usize, String> {
    let (to, length) = (into.as_ptr() as u64, into.len() as u64);
    said("libaio", aio.submit(aio::block(aio::PREAD, fd, to, length, offset as i64)))
}

fn by_uring(uring: &Uring, fd: c_int, into: &mut [u8], offset: usize) -> Result<usize, String> {
    said("io_uring", uring.run(uring::entry(uring::READ, fd, into, offset as u64)).into())
}

/// By a pipe, which `put` puts some into.
fn through(pipe: &Pipe, into: &mut [u8], mut put: impl FnMut(usize) -> i64) -> Result<usize, String> {
    let mut got = 0;
    while got < into.len() {
        let n = said("into a pipe", put(into.len() - got))?;
        if n == 0 {
            break;
        }
        pipe.take(&mut into[got..got + n])?;
        got += n;
    }
    Ok(got)
}

/// By a copy of that part of the file.
fn by_copy(file: &Files, copy: &Files, into: &mut [u8], offset: usize) -> Result<usize, String> {
    let (mut from, mut to, mut got) = (offset as i64, 0, 0);
    while got < into.len() {
        let left = into.len() - got;
        // SAFETY: plain call.
        let copied = unsafe {
            libc::copy_file_range(file.fd(), &raw mut from, copy.fd(), &raw mut to, left, 0) as i64
        };
        match said("copy_file_range", copied)? {
            0 => break,
            n => got += n,
        }
    }
    copy.read(&mut into[..got], 0)
}
