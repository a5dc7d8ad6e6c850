//! A read, as this process makes it: which ones go through the cache, into whose memory, by which system calls. The steps
//! are [`seawall_cache::front::reader`]'s.
//!
//! Only whole blocks, at offsets of blocks; any other read is the kernel's, and so is every doubt: a descriptor that cannot
//! be read, memory that cannot be written. So is read(2), whose position in the file may belong to several processes.

use core::ffi::c_int;

use libc::iovec;
use seawall_cache::front::reader::{
    self as front, BLOCKS_MAX, How, Looked, Missed, Reader, SMALLEST, Source,
};
use seawall_cache::front::word::{Answer, Reads, Word, mark};
use seawall_cache::shared::{Cache, CachedFile};
use seawall_core::Errno;
use seawall_core::client::Entered;
use seawall_stats::{Class, Event};

use super::reach::{who, zone_for};
use super::zone::may_be;
use super::{disk, table};
use crate::client::DAEMON;
use crate::kept::BLOCKS;
use crate::sys::{self, unsafe_call};
use crate::{app, log};

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
    if !may_be() || log::is_off() {
        return None;
    }
    let Wanted { fd, offset, len } = wanted;
    let offset = u64::try_from(offset).ok().filter(|offset| front::may_be(*offset, len))?;
    let cache = zone_for(fd)?;
    let run = front::blocks(cache, offset, len)?;
    let size = cache.layout().block_bytes;
    let (file, is_direct) = file_of(cache, fd)?;
    // SAFETY: the caller's.
    let mut blocks = unsafe { Blocks::new(wanted, memory, size as usize, is_direct) }?;
    let is_stream =
        table::stream(fd).is_some_and(|stream| stream.note(run.first, run.count as u32, size.into()));
    let reader = Reader { cache, who: who()?, file, run, is_stream };
    if !is_direct && reader.is_stored() && disk::is_in_memory(fd, offset, len as u64) {
        return None;
    }
    let mut missed = Missed::NOTHING;
    match reader.look(&mut missed, &mut blocks) {
        Looked::All => Some(Ok(reader.len())),
        Looked::Only(from) => {
            // A file that was forgotten is asked for again.
            if !cache.knows(file) {
                table::reset(fd);
            }
            (from > 0).then(|| Ok(reader.by_the_kernel(from, &mut blocks)))
        }
        Looked::Some => {
            let rest = match is_direct {
                true => missed.rest(),
                false => reader.without_waiting(&missed, &mut blocks),
            };
            Some(reader.disk(&missed, rest, &mut blocks))
        }
    }
}

/// The file behind `fd`, if it is served, and whether it is read past the page cache.
#[inline]
fn file_of(cache: &Cache, fd: c_int) -> Option<(CachedFile, bool)> {
    let word = table::known(cache, fd);
    match word.reads() {
        Reads::Through(file) => Some((file, word.has(mark::DIRECT))),
        Reads::Not => None,
        Reads::Pauses(next) => {
            table::let_pass(fd, next);
            None
        }
        Reads::Ask => ask(fd, word),
    }
}

#[cold]
fn ask(fd: c_int, word: Word) -> Option<(CachedFile, bool)> {
    let word = word.answered(enter(fd));
    table::set(fd, word);
    match word.reads() {
        Reads::Through(file) => Some((file, word.has(mark::DIRECT))),
        _ => None,
    }
}

/// Asks the daemon to serve the file behind `fd`, and keeps what its blocks are read by.
fn enter(fd: c_int) -> Answer {
    let (entered, lent) = DAEMON.enter(sys::borrow(fd));
    lent.and_then(|lent| lent.get(0).map(|fd| BLOCKS.keep(fd)));
    match entered {
        Entered::File { slot, tenant } => Answer::File(CachedFile { slot, tenant }),
        Entered::Never => Answer::Never,
        Entered::NotNow => Answer::NotNow,
    }
}

/// Where the blocks of a read go.
struct Blocks {
    fd: c_int,
    offset: u64,
    size: usize,
    /// The page cache has nothing of them.
    is_direct: bool,
    count: usize,
    at: [iovec; BLOCKS_MAX],
}

impl Blocks {
    /// `None` if a block would lie in two pieces of memory, or in memory that cannot be written.
    ///
    /// # Safety
    /// As for [`read`]: the memory is the application's for as long as the result lives.
    #[inline]
    unsafe fn new(
        wanted: Wanted,
        memory: impl Iterator<Item = iovec>,
        size: usize,
        is_direct: bool,
    ) -> Option<Self> {
        const NOWHERE: iovec = iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };
        let Wanted { fd, offset, .. } = wanted;
        let mut blocks =
            Self { fd, offset: offset as u64, size, is_direct, count: 0, at: [NOWHERE; BLOCKS_MAX] };
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
}

impl Source for Blocks {
    type Error = Errno;

    #[inline]
    fn block(&mut self, i: usize) -> &mut [u8] {
        // SAFETY: the application's own for as long as `self` lives, and writable (`new`); nobody else here refers to it.
        unsafe { core::slice::from_raw_parts_mut(self.at[i].iov_base.cast::<u8>(), self.size) }
    }

    fn kernel(&mut self, from: usize, to: usize, how: How) -> Result<usize, Errno> {
        let offset = self.offset + (from * self.size) as u64;
        let at = &self.at[from..to];
        match (how, at) {
            (How::Wait, [one]) => unsafe_call!(SYS_pread64, self.fd, one.iov_base, one.iov_len, offset),
            (How::Wait, _) => unsafe_call!(SYS_preadv, self.fd, at.as_ptr(), at.len(), offset, 0),
            (How::NoWait, _) => {
                unsafe_call!(SYS_preadv2, self.fd, at.as_ptr(), at.len(), offset, 0, RWF_NOWAIT)
            }
        }
    }

    fn give_up(&self, from: usize, to: usize) {
        let (offset, len) = (self.offset + (from * self.size) as u64, (to - from) * self.size);
        if !self.is_direct {
            let _ = unsafe_call!(SYS_fadvise64, self.fd, offset, len, libc::POSIX_FADV_DONTNEED);
        }
    }

    #[inline]
    fn ns(&self, ticks: u64) -> u64 {
        log::joined().map_or(0, |engine| engine.shm().header().clock().ns(ticks))
    }

    #[inline]
    fn record(&self, event: Event, class: Class, ns: u64, count: usize) {
        let Some(engine) = log::joined() else { return };
        let shm = engine.shm();
        // Threads meet seldom.
        let stats = shm.stats((sys::thread_pointer() >> 12) as u32 % shm.shape().lanes);
        (0..count).for_each(|_| stats.record_shared(event, class, ns));
    }
}
