//! Publishing by a store: a file that is overwritten in place again and again is mapped, and a logged write
//! goes into the page cache without a system call. Just as visible to read(2), and several times cheaper, as
//! long as most stores hit pages that were not written back since the last one. So each row measures both ways
//! on the load it has, and takes the cheaper one.
//!
//! Only where the store cannot fail: below [`Engine::solid`](seawall_core::Engine::solid). Every other write,
//! and any doubt, is pwrite(2)'s. What is left to fail is a file that somebody truncates past Seawall, or a
//! page that cannot be read back: a SIGBUS, caught by [`fault::stand`], and the write is done by pwrite(2) after all.
//!
//! A row serves one file at a time. Callers hold the file's lock; a row that is in use (a signal handler, a
//! file with the same row) says no.

use core::ffi::c_int;
use core::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use seawall_core::{Errno, FileRef};
use seawall_stats::ticks;

mod choice;
mod fault;

use choice::Choice;

use crate::classify::Target;
use crate::sys::raw;

/// Smaller files are not worth it, and ext4 may keep them inside the inode.
const SMALLEST: u64 = 64 << 10;
/// In larger ones so many pages fault after each write-back that finding out costs more than it brings.
const LARGEST: u64 = 32 << 20;
const PAGE: u64 = 4096;

/// Nobody uses the row.
const IDLE: u8 = 0;
/// A thread works on it.
const BUSY: u8 = 1;

#[repr(align(64))] // Threads on different files do not meet.
struct Row {
    state: AtomicU8,
    /// Slot and generation of the file; 0 for none: generations begin at 1.
    file: AtomicU64,
    /// Address and length of the mapping, 0 if there is none.
    at: AtomicUsize,
    len: AtomicUsize,
    /// The file cannot be mapped here.
    refused: AtomicBool,
    /// The mapping was replaced by [`fault::stand`]: what was stored went nowhere.
    broken: AtomicBool,
    choice: Choice,
}

const ROWS: usize = 16;
static TABLE: [Row; ROWS] = [const {
    Row {
        state: AtomicU8::new(IDLE),
        file: AtomicU64::new(0),
        at: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        refused: AtomicBool::new(false),
        broken: AtomicBool::new(false),
        choice: Choice::new(),
    }
}; ROWS];

/// Publishes `data` at `offset` of the target: by a store, or by `call`. To be called in a publish: the
/// file's lock is held.
///
/// # Errors
/// What `call` said.
#[inline]
pub fn publish<'d>(
    target: &Target,
    fd: c_int,
    offset: u64,
    data: impl Iterator<Item = &'d [u8]> + Clone,
    call: impl FnOnce() -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let solid = target.engine.solid(target.file);
    if !(SMALLEST..=LARGEST).contains(&solid) {
        return call();
    }
    let length: usize = data.clone().map(<[u8]>::len).sum();
    let in_place = offset.checked_add(length as u64).is_some_and(|end| end <= solid);
    let row = &TABLE[target.file.slot as usize % ROWS];
    if !in_place || row.state.compare_exchange(IDLE, BUSY, Acquire, Relaxed).is_err() {
        return call();
    }
    let start = ticks();
    row.serve(target.file, solid);
    let by_store = row.choice.is_store() && row.covers(fd, solid) && row.copy(offset, data);
    let done = if by_store { Ok(length) } else { call() };
    row.choice.note(ticks().wrapping_sub(start), length);
    row.state.store(IDLE, Release);
    done
}

impl Row {
    /// Turns to a file.
    #[inline]
    fn serve(&self, file: FileRef, solid: u64) {
        let name = u64::from(file.generation) << 32 | u64::from(file.slot);
        if self.file.load(Relaxed) != name {
            self.unmap();
            self.file.store(name, Relaxed);
            self.refused.store(false, Relaxed);
            self.choice.restart((solid / PAGE) as u32);
        }
    }

    /// True if the row maps at least `solid` bytes of the file.
    #[inline]
    fn covers(&self, fd: c_int, solid: u64) -> bool {
        self.len.load(Relaxed) as u64 >= solid || !self.refused.load(Relaxed) && self.map(fd, solid)
    }

    #[cold]
    fn map(&self, fd: c_int, solid: u64) -> bool {
        self.unmap();
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let len = solid.next_multiple_of(PAGE) as usize;
        let mapped = fault::stand()
            && raw!(SYS_mmap, 0, len, prot, flags, fd, 0).is_ok_and(|at| {
                self.at.store(at, Relaxed);
                self.len.store(len, Release);
                true
            });
        self.refused.store(!mapped, Relaxed);
        mapped
    }

    fn unmap(&self) {
        let len = self.len.swap(0, Relaxed);
        if len != 0 {
            let _ = raw!(SYS_munmap, self.at.swap(0, Relaxed), len);
        }
    }

    /// Copies. False if the mapping broke meanwhile.
    #[inline]
    fn copy<'d>(&self, offset: u64, data: impl Iterator<Item = &'d [u8]>) -> bool {
        let mut to = self.at.load(Relaxed) + offset as usize;
        for slice in data {
            // SAFETY: the mapping covers `solid` bytes (`covers`), and the write ends below them (`publish`).
            // Nobody in this process has a reference into it; the source is the application's own buffer,
            // which lies elsewhere, as this mapping's address was never given away.
            unsafe { core::ptr::copy_nonoverlapping(slice.as_ptr(), to as *mut u8, slice.len()) };
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
