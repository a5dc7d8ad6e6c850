//! Publishing by a store: a file that is overwritten in place again and again is mapped, and a logged write
//! goes into the page cache without a system call. Just as visible to read(2), and several times cheaper, as
//! long as most stores hit pages that are writable already: those are looked for by [`Warmth`], and
//! [`Choice`] measures both ways on the load there is.
//!
//! Only where the store cannot fail: below [`Engine::solid`](seawall_core::Engine::solid). Every other write,
//! and any doubt, is pwrite(2)'s. What is left to fail is a file that somebody truncates past Seawall, or a
//! page that cannot be read back: a SIGBUS, caught by [`fault::stand`], and the write is done by pwrite(2) after all.
//!
//! A row serves one file at a time, and of that a *window*. Callers hold the file's lock; a row that is in use (a
//! file with the same row) says no.

use core::ffi::c_int;
use core::ops::Range;
use core::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

mod fault;

use seawall_core::publish::{After, BLOCK, CHUNK, CHUNKS, Choice, Chunk, Warmth};
use seawall_core::{Errno, FileRef};
use seawall_media::copy_past_cache;
use seawall_stats::ticks;

use crate::classify::Target;
use crate::holds;
use crate::sys::unsafe_call;

/// Smaller files are not worth it, and ext4 may keep them inside the inode.
const SMALLEST: u64 = 64 << 10;
/// Bytes of a file that a row looks at.
const WINDOW: u64 = CHUNKS as u64 * CHUNK;
/// Writes outside of the window, one after the other, for which it moves: not for the few that a log makes to its
/// header.
const ASTRAY: u32 = 16;
/// Writes of a file that make it worth asking how much of it is solid.
const MANY: u32 = 64;
/// Bytes from which on a store goes past the cache: most databases have a copy of their own, and read it back seldom.
const PAST_CACHE: u64 = 1024;
const PAGE: u64 = 4096;

/// Nobody uses the row.
const IDLE: u8 = 0;
/// A thread works on it.
const BUSY: u8 = 1;

#[repr(align(64))] // Threads on different files do not meet.
struct Row {
    state: AtomicU8,
    /// The file ([`FileRef::word`]), 0 for none.
    file: AtomicU64,
    /// Writes beyond of what was known to be solid.
    blind: AtomicU32,
    /// Where the window begins.
    window: AtomicU64,
    /// Writes outside of it since the last one inside.
    astray: AtomicU32,
    /// Address and length of the window's mapping, 0 if there is none.
    at: AtomicUsize,
    len: AtomicUsize,
    /// The file cannot be mapped here.
    refused: AtomicBool,
    /// Bytes from which on a store goes past the cache.
    past_cache: AtomicU64,
    /// The mapping was replaced by [`fault::stand`]: what was stored went nowhere.
    broken: AtomicBool,
    warmth: Warmth,
    choice: Choice,
}

const ROWS: usize = 16;
static TABLE: [Row; ROWS] = [const {
    Row {
        state: AtomicU8::new(IDLE),
        file: AtomicU64::new(0),
        blind: AtomicU32::new(0),
        window: AtomicU64::new(0),
        astray: AtomicU32::new(0),
        at: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        refused: AtomicBool::new(false),
        past_cache: AtomicU64::new(PAST_CACHE),
        broken: AtomicBool::new(false),
        warmth: Warmth::new(),
        choice: Choice::new(),
    }
}; ROWS];

/// A row that this thread works on.
pub struct Turn(&'static Row);

impl Turn {
    /// Takes the target's row, if nobody has it. To be called with the file's lock held.
    #[inline]
    pub fn take(target: &Target) -> Option<Self> {
        let row = &TABLE[target.file.slot as usize % ROWS];
        row.state.compare_exchange(IDLE, BUSY, Acquire, Relaxed).is_ok().then_some(Self(row))
    }

    /// Publishes `data` at `offset` of the target: by a store, or by `call`. To be called in a publish: the file's lock
    /// is held; `now` is what that was given.
    ///
    /// # Errors
    /// What `call` said.
    #[inline]
    pub fn publish<'d>(
        &self,
        target: &Target,
        fd: c_int,
        (offset, now): (u64, u64),
        data: impl Iterator<Item = &'d [u8]> + Clone,
        call: impl FnOnce() -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let row = self.0;
        row.serve(target.file);
        let solid = target.engine.solid(target.file);
        let length: usize = data.clone().map(<[u8]>::len).sum();
        let in_place = offset.checked_add(length as u64).is_some_and(|end| end <= solid);
        if !in_place && row.is_time_to_ask() {
            target.engine.ask_for_solid(target.file);
        }
        let place = if in_place && solid >= SMALLEST { row.place(offset, length as u64) } else { None };
        match place {
            Some(bytes) if row.is_for_store(fd, &bytes, solid) => {
                target.engine.note_store(target.file);
                row.store(&bytes, now, data).map_or_else(|| row.call(&bytes, call), Ok)
            }
            Some(bytes) => row.call(&bytes, call),
            None => call(),
        }
    }
}

impl Drop for Turn {
    #[inline]
    fn drop(&mut self) {
        self.0.state.store(IDLE, Release);
    }
}

impl Row {
    /// Turns to a file.
    #[inline]
    fn serve(&self, file: FileRef) {
        let name = file.word();
        if self.file.load(Relaxed) != name {
            self.look_at(0);
            self.file.store(name, Relaxed);
            self.blind.store(0, Relaxed);
            self.choice.restart();
        }
    }

    /// Nobody has looked how much of the file is solid, or it has grown since. A daemon that has much to do looks
    /// every few seconds: it is asked to do it now, for a file with many such writes, and ever more seldom.
    #[inline]
    fn is_time_to_ask(&self) -> bool {
        let blind = self.blind.load(Relaxed).saturating_add(1);
        self.blind.store(blind, Relaxed);
        blind >= MANY && blind.is_power_of_two()
    }

    /// Turns to a window.
    #[cold]
    fn look_at(&self, window: u64) {
        self.unmap();
        self.refused.store(false, Relaxed);
        self.warmth.clear();
        self.window.store(window, Relaxed);
        self.astray.store(0, Relaxed);
    }

    /// Where in the window a write lies. `None`: not, or not as a whole.
    #[inline]
    fn place(&self, offset: u64, length: u64) -> Option<Range<u64>> {
        let window = self.window.load(Relaxed);
        let start = offset.wrapping_sub(window);
        if start < WINDOW && length <= WINDOW - start {
            self.astray.store(0, Relaxed);
            return Some(start..start + length);
        }
        let astray = self.astray.load(Relaxed) + 1;
        self.astray.store(astray, Relaxed);
        if astray >= ASTRAY {
            self.look_at(offset / WINDOW * WINDOW);
        }
        None
    }

    /// A store that began at `start`. `None`: the mapping broke, and nothing is written.
    #[inline]
    fn store<'d>(
        &self,
        bytes: &Range<u64>,
        start: u64,
        data: impl Iterator<Item = &'d [u8]>,
    ) -> Option<usize> {
        let length = bytes.end - bytes.start;
        let past = length >= self.past_cache.load(Relaxed) && !self.warmth.repeats(bytes);
        if !self.copy(bytes.start, data, past) {
            return None;
        }
        let stored = ticks();
        let slow = self.choice.stored(stored.wrapping_sub(start), length);
        match self.warmth.stored(bytes, slow) {
            After::Nothing => return Some(length as usize),
            After::OpenBlock => self.advise(bytes.start, BLOCK, libc::MADV_POPULATE_WRITE),
            // So that one fault makes a whole folio writable again, and not each page its own.
            After::DropChunk => self.advise(bytes.start, CHUNK, libc::MADV_DONTNEED),
        }
        self.choice.prepared(ticks().wrapping_sub(stored));
        Some(length as usize)
    }

    #[inline]
    fn call(&self, bytes: &Range<u64>, call: impl FnOnce() -> Result<usize, Errno>) -> Result<usize, Errno> {
        let start = ticks();
        let done = call();
        self.choice.called(ticks().wrapping_sub(start), bytes.end - bytes.start);
        self.warmth.called(bytes);
        done
    }

    #[inline]
    fn is_for_store(&self, fd: c_int, bytes: &Range<u64>, solid: u64) -> bool {
        self.choice.allows_store()
            && match self.warmth.of(bytes) {
                Chunk::Cold => false,
                Chunk::Due => self.is_warm_now(fd, bytes, solid),
                Chunk::Warm => self.covers(fd, bytes.end, solid),
            }
    }

    /// A chunk that is due is warm if all its pages are in memory: a store would wait for the disk.
    #[cold]
    fn is_warm_now(&self, fd: c_int, bytes: &Range<u64>, solid: u64) -> bool {
        let chunk = bytes.start / CHUNK * CHUNK;
        let warm = self.covers(fd, bytes.end, solid) && self.is_resident(chunk);
        self.warmth.decide(bytes, warm);
        warm
    }

    /// True if the window is mapped up to `end`.
    #[inline]
    fn covers(&self, fd: c_int, end: u64, solid: u64) -> bool {
        self.len.load(Relaxed) as u64 >= end || !self.refused.load(Relaxed) && self.map(fd, solid)
    }

    /// Maps what is solid of the window.
    #[cold]
    fn map(&self, fd: c_int, solid: u64) -> bool {
        self.unmap();
        // Read back from here, by a program that keeps no copy (LMDB).
        let past = if holds::is_read_mapped(FileRef::of_word(self.file.load(Relaxed))) {
            u64::MAX
        } else {
            PAST_CACHE
        };
        self.past_cache.store(past, Relaxed);
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let window = self.window.load(Relaxed);
        let len = (solid - window).min(WINDOW).next_multiple_of(PAGE) as usize;
        let mapped = match fault::stand() {
            true => unsafe_call!(SYS_mmap, 0, len, prot, flags, fd, window),
            false => Err(Errno::NOSYS),
        };
        if let Ok(at) = mapped {
            self.at.store(at, Relaxed);
            self.len.store(len, Release);
        }
        // By a descriptor that cannot read (LMDB has one for its root pages) it is not to be had, by others it may be.
        self.refused.store(mapped.is_err_and(|error| error != Errno::ACCESS), Relaxed);
        mapped.is_ok()
    }

    /// True if all pages of the chunk that are mapped are in memory.
    fn is_resident(&self, chunk: u64) -> bool {
        let mut pages = [0u8; (CHUNK / PAGE) as usize];
        let (at, len) = self.part(chunk, CHUNK);
        unsafe_call!(SYS_mincore, at, len, pages.as_mut_ptr()).is_ok()
            && pages[..len.div_ceil(PAGE as usize)].iter().all(|page| page & 1 == 1)
    }

    /// Advises the kernel on the part that a byte lies in. Whatever it says to that: faults do the same, one by one.
    #[cold]
    fn advise(&self, byte: u64, unit: u64, advice: c_int) {
        let (at, len) = self.part(byte / unit * unit, unit);
        let _ = unsafe_call!(SYS_madvise, at, len, advice);
    }

    /// Address and length of what is mapped of a part of the window.
    fn part(&self, start: u64, unit: u64) -> (usize, usize) {
        let left = self.len.load(Relaxed).saturating_sub(start as usize);
        (self.at.load(Relaxed) + start as usize, left.min(unit as usize))
    }

    fn unmap(&self) {
        let len = self.len.swap(0, Relaxed);
        if len != 0 {
            let _ = unsafe_call!(SYS_munmap, self.at.swap(0, Relaxed), len);
        }
    }

    /// Copies, past the cache or into it. False if the mapping broke meanwhile.
    #[inline]
    fn copy<'d>(&self, offset: u64, data: impl Iterator<Item = &'d [u8]>, past: bool) -> bool {
        let mut to = self.at.load(Relaxed) + offset as usize;
        for slice in data {
            // SAFETY: the mapping covers `solid` bytes (`covers`), and the write ends below them (`publish`).
            // Nobody in this process has a reference into it; the source is the application's own buffer,
            // which lies elsewhere, as this mapping's address was never given away.
            unsafe {
                match past {
                    true => copy_past_cache(to as *mut u8, slice),
                    false => core::ptr::copy_nonoverlapping(slice.as_ptr(), to as *mut u8, slice.len()),
                }
            }
            to += slice.len();
        }
        if self.broken.load(Acquire) {
            self.broken.store(false, Relaxed);
            self.unmap();
            self.refused.store(true, Relaxed);
            return false;
        }
        true
    }
}
