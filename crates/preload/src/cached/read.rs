//! A read: the block cache, the page cache without waiting, the disk; and what came from the disk is offered.
//!
//! A [stream](sequential) of adjacent reads is answered from the cache like any other read, and offers nothing to it, unless its
//! file is to be kept.
//!
//! Only whole blocks, at offsets of blocks, up to [`BLOCKS_MAX`] of them; any other read is the kernel's, and so is every
//! doubt: a descriptor that cannot be read, memory that cannot be written. So is read(2), whose position in the file may
//! belong to several processes.

use core::ffi::c_int;

use libc::iovec;
use seawall_cache::set::Policy;
use seawall_cache::shared::{Cache, FileRef, Lookup, Owner, Token, is_counted};
use seawall_core::Errno;
use seawall_stats::{Class, Event, ticks};

use super::table::{self, Is, Word, mark};
use super::{may_be, sequential, who, zone_for};
use crate::client::{self, Entered};
use crate::sys::{self, raw};
use crate::{app, session};

/// The most blocks of a read that goes through the cache.
const BLOCKS_MAX: usize = 32;
/// From this length on a read is a scan's, and passes by.
const LONG: usize = 256 << 10;
/// The smallest block there is.
const SMALLEST: usize = 4096;
/// How many reads of a descriptor pass after its file was refused.
const PAUSE: u16 = 1000;
const RWF_NOWAIT: c_int = 8;

/// A read as it was asked for.
#[derive(Clone, Copy)]
pub struct Wanted {
    /// The descriptor.
    pub fd: c_int,
    /// Where in the file.
    pub offset: i64,
    /// How many bytes.
    pub len: usize,
}

/// Reads whole blocks into `memory`; `None` if this is the kernel's business alone.
///
/// # Safety
/// As pread(2): the memory is the application's for the length of its call. Whether it can be written is looked at.
#[inline]
pub unsafe fn read(
    wanted: Wanted,
    memory: impl Iterator<Item = iovec> + Clone,
) -> Option<Result<usize, Errno>> {
    if !may_be() || session::is_off() {
        return None;
    }
    let Wanted { fd, offset, len } = wanted;
    let is_of = |size: usize| len.is_multiple_of(size) && (offset as u64).is_multiple_of(size as u64);
    if offset < 0 || !(SMALLEST..LONG).contains(&len) || !is_of(SMALLEST) {
        return None;
    }
    let cache = zone_for(fd)?;
    let size = cache.layout().block_bytes as usize;
    if !is_of(size) || len / size > BLOCKS_MAX {
        return None;
    }
    let (file, is_direct) = file_of(cache, fd)?;
    let blocks = Blocks::new(memory, size, is_direct)?;
    let first = u32::try_from(offset as u64 / size as u64).ok()?;
    let passes = sequential::note(fd, first, blocks.count as u32, size as u64);
    let reader = Reader { cache, who: who()?, file, fd, first, blocks, passes };
    // SAFETY: the caller's.
    unsafe { reader.read(is_direct) }
}

/// The file behind `fd`, if it is served, and whether it is read past the page cache.
#[inline]
fn file_of(cache: &Cache, fd: c_int) -> Option<(FileRef, bool)> {
    let word = table::known(cache, fd);
    match word.is() {
        Is::Entered(file) if word.has(mark::READS | mark::SURE) => Some((file, word.has(mark::DIRECT))),
        Is::Unknown | Is::Other => None,
        Is::Plain(..) if word.pause() > 0 => {
            table::let_pass(fd, word);
            None
        }
        Is::Entered(_) | Is::Plain(..) if word.has(mark::NEVER) || !word.has(mark::READS) => None,
        Is::Entered(_) | Is::Plain(..) => ask(fd, word),
    }
}

#[cold]
fn ask(fd: c_int, word: Word) -> Option<(FileRef, bool)> {
    match client::enter(fd) {
        Entered::File(file) => {
            table::set(fd, word.entered(file, mark::SURE));
            Some((file, word.has(mark::DIRECT)))
        }
        Entered::Never => {
            table::set(fd, word.with(mark::NEVER));
            None
        }
        Entered::NotNow if matches!(word.is(), Is::Plain(..)) => {
            table::set(fd, word.with_pause(PAUSE));
            None
        }
        // There is no room for a pause: the next opening asks anew.
        Entered::NotNow => {
            table::set(fd, word.with(mark::NEVER));
            None
        }
    }
}

/// Where the blocks of a read go.
struct Blocks {
    size: usize,
    count: usize,
    at: [iovec; BLOCKS_MAX],
}

impl Blocks {
    /// `None` if a block would lie in two pieces of memory, or in memory that cannot be written.
    #[inline]
    fn new(memory: impl Iterator<Item = iovec>, size: usize, is_direct: bool) -> Option<Self> {
        const NOWHERE: iovec = iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };
        let mut blocks = Self { size, count: 0, at: [NOWHERE; BLOCKS_MAX] };
        for piece in memory {
            let at = piece.iov_base as usize;
            // The kernel has its own opinion of memory for O_DIRECT; with whole pages it is always content.
            let is_fit = piece.iov_len.is_multiple_of(size) && (!is_direct || at.is_multiple_of(SMALLEST));
            if !is_fit || !app::is_writable(at, piece.iov_len) {
                return None;
            }
            for block in 0..piece.iov_len / size {
                *blocks.at.get_mut(blocks.count)? =
                    iovec { iov_base: piece.iov_base.wrapping_byte_add(block * size), iov_len: size };
                blocks.count += 1;
            }
        }
        Some(blocks)
    }

    /// The memory of a block.
    ///
    /// # Safety
    /// As for [`read`].
    #[inline]
    unsafe fn block<'m>(&self, i: usize) -> &'m mut [u8] {
        // SAFETY: the application's own, and writable (`new`); nobody else here refers to it.
        unsafe { core::slice::from_raw_parts_mut(self.at[i].iov_base.cast::<u8>(), self.size) }
    }
}

struct Reader<'a> {
    cache: &'a Cache,
    who: Owner,
    file: FileRef,
    fd: c_int,
    first: u32,
    blocks: Blocks,
    /// It is part of a stream.
    passes: bool,
}

impl Reader<'_> {
    /// # Safety
    /// As for [`read`].
    unsafe fn read(&self, is_direct: bool) -> Option<Result<usize, Errno>> {
        let start = ticks();
        let mut missed = Missed::NOTHING;
        for i in 0..self.blocks.count {
            let number = self.first.checked_add(i as u32)?;
            // SAFETY: the caller's.
            let memory = unsafe { self.blocks.block(i) };
            if let Lookup::Miss(token) = self.cache.look_up(self.file, number, memory) {
                missed.add(i, token);
            }
        }
        let Some((from, to)) = missed.range() else {
            self.record(Event::CacheRead, start, self.blocks.count);
            return Some(Ok(self.blocks.count * self.blocks.size));
        };
        if !missed.has_tokens() {
            self.look_who_it_is();
            return if from == 0 { None } else { Some(self.rest(from)) };
        }
        // SAFETY: the caller's.
        Some(unsafe { self.fetch(from, to, &missed, is_direct) })
    }

    /// The blocks from `first` to `to`: from the page cache as far as they are there, the others from the disk.
    unsafe fn fetch(
        &self,
        first: usize,
        to: usize,
        missed: &Missed,
        is_direct: bool,
    ) -> Result<usize, Errno> {
        let (in_memory, is_quick) = if is_direct { (0, true) } else { self.without_waiting(first, to) };
        // What ends within a block is read again from that block's beginning.
        let from = first + in_memory;
        let read = if from == to { Ok(0) } else { self.disk(from, to) };
        let done = match read {
            Ok(done) => done,
            Err(e) if from == 0 => return Err(e),
            Err(_) => return Ok(from * self.blocks.size),
        };
        let passes = self.passes && self.cache.policy(self.file.slot) != Policy::Keep;
        for i in if is_quick { from } else { first }..from + done / self.blocks.size {
            if let Some(token) = missed.token(i).filter(|_| !passes) {
                // SAFETY: the caller's.
                self.cache.offer(self.who, token, unsafe { self.blocks.block(i) });
            }
        }
        let is_whole = done == (to - from) * self.blocks.size;
        Ok(if is_whole { self.blocks.count * self.blocks.size } else { from * self.blocks.size + done })
    }

    /// How many whole blocks a read had that does not wait, and whether they can have been in memory: that such a read
    /// has them proves nothing, for it begins to read from the disk, and finds what a fast one has brought by then.
    fn without_waiting(&self, from: usize, to: usize) -> (usize, bool) {
        const CALL_NS: u64 = 8_000;
        const BLOCK_NS: u64 = 2_000;
        let start = ticks();
        let blocks = self.kernel(from, to, RWF_NOWAIT).unwrap_or(0) / self.blocks.size;
        let is_quick = self.since(start) < CALL_NS + BLOCK_NS * blocks as u64;
        if !is_quick && blocks > 0 {
            self.record(Event::FileRead, start, 1);
        }
        (blocks, is_quick)
    }

    fn disk(&self, from: usize, to: usize) -> Result<usize, Errno> {
        let start = ticks();
        self.kernel(from, to, 0).inspect(|_| self.record(Event::FileRead, start, 1))
    }

    /// All from block `from` on, by the kernel alone.
    fn rest(&self, from: usize) -> Result<usize, Errno> {
        let before = from * self.blocks.size;
        Ok(before + self.kernel(from, self.blocks.count, 0).unwrap_or(0))
    }

    /// Reads these blocks by the kernel.
    fn kernel(&self, from: usize, to: usize, flags: c_int) -> Result<usize, Errno> {
        let offset = (u64::from(self.first) + from as u64) * self.blocks.size as u64;
        let at = &self.blocks.at[from..to];
        match (flags, at) {
            (0, [one]) => raw!(SYS_pread64, self.fd, one.iov_base, one.iov_len, offset),
            (0, _) => raw!(SYS_preadv, self.fd, at.as_ptr(), at.len(), offset, 0),
            _ => raw!(SYS_preadv2, self.fd, at.as_ptr(), at.len(), offset, 0, flags),
        }
    }

    /// Nanoseconds since a reading of [`ticks`].
    #[inline]
    fn since(&self, start: u64) -> u64 {
        session::joined().map_or(0, |engine| engine.shm().header().clock().ns(ticks().wrapping_sub(start)))
    }

    /// Records so many waits that took the time since `start` together.
    #[inline]
    fn record(&self, event: Event, start: u64, count: usize) {
        let Some(engine) = session::joined() else { return };
        let (shm, class) = (engine.shm(), Class::from_word(self.cache.class(self.file)));
        let ns = self.since(start) / count.max(1) as u64;
        // Threads meet seldom.
        let stats = shm.stats((sys::thread_pointer() >> 12) as u32 % shm.shape().lanes);
        (0..count).for_each(|_| stats.record_shared(event, class, ns));
        if is_counted(start) {
            let (hits, misses) = if event == Event::CacheRead { (count, 0) } else { (0, count) };
            self.cache.count_read(self.file, hits as u64, misses as u64);
        }
    }

    /// A file that was forgotten is asked for again.
    fn look_who_it_is(&self) {
        if !self.cache.knows(self.file) {
            table::reset(self.fd);
        }
    }
}

/// The blocks of a read that were not in the cache.
struct Missed {
    first: usize,
    end: usize,
    tokens: [Option<Token>; BLOCKS_MAX],
}

impl Missed {
    const NOTHING: Self = Self { first: 0, end: 0, tokens: [const { None }; BLOCKS_MAX] };

    fn add(&mut self, i: usize, token: Option<Token>) {
        if self.end == 0 {
            self.first = i;
        }
        self.end = i + 1;
        self.tokens[i] = token;
    }

    /// From the first to behind the last.
    fn range(&self) -> Option<(usize, usize)> {
        (self.end > 0).then_some((self.first, self.end))
    }

    fn has_tokens(&self) -> bool {
        self.tokens[self.first..self.end].iter().any(Option::is_some)
    }

    fn token(&self, i: usize) -> Option<&Token> {
        self.tokens[i].as_ref()
    }
}
