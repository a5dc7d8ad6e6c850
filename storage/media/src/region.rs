//! A mapped stretch of memory: shared with other processes, perhaps persistent.
//!
//! Every access is bounds-checked against the mapping. Plain reads copy out, because another process may
//! write at any moment and a reference would promise otherwise.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fd::AsFd;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, munmap};

#[cfg(feature = "std")]
use crate::HUGE_PAGE;
use crate::{LINE, Stream, Striped, aligned, copy, flush, sim};

/// A shared mapping of a pool or of the run-time memory.
pub struct Region {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is shared memory by nature; every method goes through atomics, volatile-like copies
// or stores whose exclusivity the log's lanes establish.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

/// Why a mapping was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// The length is zero or does not fit this machine.
    Length(u64),
    /// The kernel refused, with this errno.
    Kernel(i32),
}

impl Region {
    /// Maps `len` bytes of `fd`, shared, for reading and writing.
    ///
    /// With `sync` the mapping is made with `MAP_SYNC` (mmap(2)): the kernel refuses (`EOPNOTSUPP`) unless
    /// flushed stores to it survive power loss without any system call.
    ///
    /// # Errors
    /// [`MapError`]. The file must be at least `len` bytes long, or later accesses raise SIGBUS.
    pub fn map(fd: impl AsFd, len: u64, sync: bool) -> Result<Self, MapError> {
        Self::map_with(fd, len, ProtFlags::READ | ProtFlags::WRITE, sync)
    }

    /// Maps `len` bytes of `fd` for reading only. Any store through such a region is a fault.
    ///
    /// # Errors
    /// As for [`map`](Self::map).
    pub fn map_read_only(fd: impl AsFd, len: u64) -> Result<Self, MapError> {
        Self::map_with(fd, len, ProtFlags::READ, false)
    }

    /// Maps `len` bytes of `fd` for reading with `MAP_SYNC`: only to hear whether the kernel grants it.
    ///
    /// # Errors
    /// As for [`map`](Self::map).
    #[cfg(feature = "std")]
    pub(crate) fn map_for_probe(fd: impl AsFd, len: u64) -> Result<Self, MapError> {
        Self::map_with(fd, len, ProtFlags::READ, true)
    }

    fn map_with(fd: impl AsFd, len: u64, prot: ProtFlags, sync: bool) -> Result<Self, MapError> {
        let size = usize::try_from(len).ok().filter(|n| *n > 0).ok_or(MapError::Length(len))?;
        let flags = if sync { MapFlags::SHARED_VALIDATE | MapFlags::SYNC } else { MapFlags::SHARED };
        let at = aligned::map(size, prot, flags, fd).map_err(|e| MapError::Kernel(e.raw_os_error()))?;
        let base = NonNull::new(at.cast::<u8>()).ok_or(MapError::Kernel(0))?;
        Ok(Self { base, len: size })
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: a region has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address of the mapping, as an [`Observer`](sim::Observer) sees it.
    #[cfg(feature = "sim")]
    pub fn base(&self) -> usize {
        self.base.as_ptr() as usize
    }

    /// The shared 64-bit word at `at`. Not flushed: see the crate's crash contract.
    ///
    /// # Panics
    /// If `at` is unaligned or outside the region.
    #[inline]
    pub fn u64(&self, at: usize) -> &AtomicU64 {
        sim::touched(self.base.as_ptr());
        let word = self.range(at, 8).cast::<AtomicU64>();
        assert!(word.is_aligned(), "u64 at {at}");
        // SAFETY: in bounds, aligned, live as long as `self`; concurrent access is atomic.
        unsafe { &*word }
    }

    /// The shared 32-bit word at `at`. Not flushed: see the crate's crash contract.
    ///
    /// # Panics
    /// If `at` is unaligned or outside the region.
    #[inline]
    pub fn u32(&self, at: usize) -> &AtomicU32 {
        sim::touched(self.base.as_ptr());
        let word = self.range(at, 4).cast::<AtomicU32>();
        assert!(word.is_aligned(), "u32 at {at}");
        // SAFETY: in bounds, aligned, live as long as `self`; concurrent access is atomic.
        unsafe { &*word }
    }

    /// Copies bytes out.
    ///
    /// # Panics
    /// If the range is outside the region.
    #[inline]
    pub fn read(&self, at: usize, into: &mut [u8]) {
        sim::reads(self.base.as_ptr(), at, into.len());
        let from = self.range(at, into.len());
        // SAFETY: in bounds; `into` is ours alone, so the two cannot overlap.
        unsafe { core::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
    }

    /// Copies whole lines out and returns their checksum, a [`Striped`]. Every word is loaded once: what is
    /// returned is the checksum of what was copied, whoever stores to the lines meanwhile.
    ///
    /// # Panics
    /// If the range is outside the region, or not whole lines.
    #[inline]
    pub fn read_summed(&self, at: usize, into: &mut [u8]) -> u32 {
        assert!(at.is_multiple_of(LINE) && into.len().is_multiple_of(LINE), "{} bytes at {at}", into.len());
        let (mut sum, mut at) = (Striped::new(), at);
        for piece in into.chunks_mut(sim::PIECE) {
            sim::touched(self.base.as_ptr());
            sim::reads(self.base.as_ptr(), at, piece.len());
            let from = self.range(at, piece.len());
            // SAFETY: in bounds; `piece` is ours alone, so the two cannot overlap.
            unsafe { copy::read_lines(from, piece, &mut sum) };
            at += piece.len();
        }
        sum.finish()
    }

    /// Stores bytes and starts their write-back: persisted after the next [`fence`](crate::fence).
    ///
    /// # Panics
    /// If the range is outside the region.
    #[inline]
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn store(&self, at: usize, bytes: &[u8]) {
        let to = self.range(at, bytes.len());
        // SAFETY: in bounds; the caller's slice is not in the mapping (it would be a second reference).
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
            flush::flush_range(to, bytes.len());
        }
        sim::wrote(self.base.as_ptr(), at, bytes.len());
    }

    /// Stores bytes as shared memory: visible to other processes, and never persisted by a fence.
    ///
    /// # Panics
    /// If the range is outside the region.
    #[inline]
    pub fn copy_in(&self, at: usize, bytes: &[u8]) {
        let to = self.range(at, bytes.len());
        // SAFETY: in bounds; the caller's slice is not in the mapping (it would be a second reference).
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Copies bytes from one place to another, as [`copy_in`](Self::copy_in) stores them.
    ///
    /// # Panics
    /// If a range is outside the region, or they overlap.
    #[inline]
    pub fn copy_within(&self, from: usize, to: usize, len: usize) {
        assert!(from + len <= to || to + len <= from, "{len} bytes from {from} to {to}");
        let (from, to) = (self.range(from, len), self.range(to, len));
        // SAFETY: both in bounds and apart.
        unsafe { core::ptr::copy_nonoverlapping(from, to, len) };
    }

    /// Stores zeros, as [`copy_in`](Self::copy_in) does.
    ///
    /// # Panics
    /// If the range is outside the region.
    #[inline]
    pub fn zero(&self, at: usize, len: usize) {
        let to = self.range(at, len);
        // SAFETY: in bounds.
        unsafe { core::ptr::write_bytes(to, 0, len) };
    }

    /// The checksum of whole lines that nobody stores to meanwhile.
    ///
    /// # Panics
    /// If the range is outside the region, or not whole lines.
    pub(crate) fn striped(&self, at: usize, len: usize) -> u32 {
        let mut sum = Striped::new();
        // SAFETY: the caller has this stretch to itself.
        sum.update(unsafe { self.bytes(at, len) });
        sum.finish()
    }

    /// The bytes of a range.
    ///
    /// # Safety
    /// Nobody may store to it while the slice lives.
    ///
    /// # Panics
    /// If the range is outside the region.
    pub(crate) unsafe fn bytes(&self, at: usize, len: usize) -> &[u8] {
        // SAFETY: in bounds, live as long as `self`; the caller vouches for the rest.
        unsafe { core::slice::from_raw_parts(self.range(at, len), len) }
    }

    /// Stores one line past the cache: persisted after the next [`fence`](crate::fence).
    ///
    /// # Panics
    /// If `at` is not line-aligned or outside the region.
    #[inline]
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn store_line(&self, at: usize, line: &[u8; LINE]) {
        assert!(at.is_multiple_of(LINE), "line store at {at}");
        let to = self.range(at, LINE);
        // SAFETY: in bounds and aligned (mappings are page-aligned).
        unsafe { copy::store_lines(to, line) };
        sim::wrote(self.base.as_ptr(), at, LINE);
    }

    /// Stores one 8-byte unit atomically and starts its write-back: persisted after the next
    /// [`fence`](crate::fence), and never torn.
    #[inline]
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn set_u64(&self, at: usize, value: u64) {
        self.u64(at).store(value, Ordering::Release);
        let word = self.range(at, 8);
        // SAFETY: in bounds.
        unsafe { flush::flush_range(word, 8) };
        sim::wrote(self.base.as_ptr(), at, 8);
    }

    /// Starts the write-back of a range that was stored by other means.
    #[inline]
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn flush(&self, at: usize, len: usize) {
        let start = self.range(at, len);
        // SAFETY: in bounds.
        unsafe { flush::flush_range(start, len) };
        sim::flushed(self.base.as_ptr(), at, len);
    }

    /// Enters a range into this process's page table in one go, for a fraction of what its faults would cost.
    /// Page-aligned ranges only; a mere hint before Linux 5.14.
    pub fn populate(&self, at: usize, len: usize) {
        let start = self.range(at, len);
        // SAFETY: in bounds, and the advice changes no content: it does what a store to each page would begin
        // with. A page that cannot be had is the store's to find out.
        let _ = unsafe { madvise(start.cast(), len, Advice::LinuxPopulateWrite) };
    }

    /// Asks the kernel to put huge pages in the place of the small ones that the file has by now in the huge pages that end
    /// in this range (`MADV_COLLAPSE`, madvise(2)). Of use on tmpfs; where it is not to be had, since Linux 6.1, nothing
    /// happens.
    ///
    /// # Panics
    /// If the range is outside the region.
    #[cfg(feature = "std")]
    pub fn collapse(&self, at: usize, len: usize) {
        let [from, to] = [at, at + len].map(|edge| edge / HUGE_PAGE * HUGE_PAGE);
        let start = self.range(from, to - from);
        // SAFETY: in bounds, and the advice changes no content.
        let _ = unsafe { libc::madvise(start.cast(), to - from, libc::MADV_COLLAPSE) };
    }

    /// A payload stream that begins at the line-aligned offset `at`. The caller must own that stretch.
    ///
    /// # Panics
    /// If `at` is not line-aligned.
    #[inline]
    pub fn stream(&self, at: usize) -> Stream<'_> {
        assert!(at.is_multiple_of(LINE), "stream at {at}");
        Stream::new(self, at)
    }

    #[inline]
    #[cfg_attr(feature = "sim", track_caller)]
    pub(crate) fn copy_lines(&self, at: usize, lines: &[u8], sum: &mut Striped) {
        let to = self.range(at, lines.len());
        // SAFETY: in bounds; `at` is line-aligned (`stream`) and advances by whole lines.
        unsafe { copy::copy_lines(to, lines, sum) };
        sim::wrote(self.base.as_ptr(), at, lines.len());
    }

    #[inline]
    fn range(&self, at: usize, len: usize) -> *mut u8 {
        let end = at.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.len), "{len} bytes at {at} of {}", self.len);
        // SAFETY: `at <= self.len`, so the result stays inside the mapping or one past its end.
        unsafe { self.base.as_ptr().add(at) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: made by `map_with` with this length, and every borrow of it has ended.
        // Nothing can be done about a failure, and none is possible for a mapping that exists.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}
