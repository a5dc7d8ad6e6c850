//! Traced calls with readable arguments, for what nearly every case does.

use crate::call::{self, Kind};
use crate::context::Context;
use crate::process;
use crate::trace::printable;
use std::ffi::{CStr, c_char, c_int};

impl Context {
    /// A traced call whose text is given: `pwrite B*4096@0`.
    fn traced(&self, text: &str, kind: Kind, body: impl FnOnce() -> i64) -> i64 {
        call::set_errno(call::SENTINEL);
        let result = body();
        self.outcome(text, result, call::errno(), kind)
    }

    /// `open` of a path.
    pub fn open(&self, path: &CStr, flags: c_int) -> c_int {
        // SAFETY: the path is NUL-terminated.
        self.traced("open", Kind::Descriptor, || unsafe { libc::open(path.as_ptr(), flags, 0o644) }.into())
            as c_int
    }

    /// `pwrite` of `length` bytes `fill`.
    pub fn pwrite(&self, fd: c_int, fill: u8, length: usize, offset: i64) -> i64 {
        let buffer = vec![fill; length];
        let text = format!("pwrite {}*{length}@{offset}", printable(fill));
        // SAFETY: the buffer outlives the call.
        self.traced(&text, Kind::Number, || unsafe {
            libc::pwrite(fd, buffer.as_ptr().cast(), length, offset)
        } as i64)
    }

    /// `write` of `length` bytes `fill` at the descriptor's offset.
    pub fn write(&self, fd: c_int, fill: u8, length: usize) -> i64 {
        let buffer = vec![fill; length];
        let text = format!("write {}*{length}", printable(fill));
        // SAFETY: the buffer outlives the call.
        self.traced(&text, Kind::Number, || unsafe { libc::write(fd, buffer.as_ptr().cast(), length) } as i64)
    }

    /// `fsync`.
    pub fn fsync(&self, fd: c_int) -> i64 {
        call!(self, fsync(fd))
    }

    /// `fdatasync`.
    pub fn fdatasync(&self, fd: c_int) -> i64 {
        call!(self, fdatasync(fd))
    }

    /// `close`.
    pub fn close(&self, fd: c_int) -> i64 {
        call!(self, close(fd))
    }

    /// `lseek`.
    pub fn seek(&self, fd: c_int, offset: i64, whence: c_int) -> i64 {
        call!(self, lseek(fd, offset, whence))
    }

    /// `dprintf` of a string.
    pub fn dprintf(&self, fd: c_int, text: &CStr) -> i64 {
        unsafe extern "C" {
            fn dprintf(fd: c_int, format: *const c_char, ...) -> c_int;
        }
        // SAFETY: one %s, one string.
        self.traced("dprintf", Kind::Number, || unsafe { dprintf(fd, c"%s".as_ptr(), text.as_ptr()) }.into())
    }

    /// `__dprintf_chk`, which `_FORTIFY_SOURCE` puts in dprintf's place.
    pub fn checked_dprintf(&self, fd: c_int, text: &CStr) -> i64 {
        unsafe extern "C" {
            fn __dprintf_chk(fd: c_int, flag: c_int, format: *const c_char, ...) -> c_int;
        }
        self.traced("__dprintf_chk", Kind::Number, || {
            // SAFETY: one %s, one string.
            unsafe { __dprintf_chk(fd, 1, c"%s".as_ptr(), text.as_ptr()) }.into()
        })
    }

    /// Opens `path` anew, shows what is in it, closes it. Not for cases that hold POSIX locks.
    pub fn show_path(&self, path: &CStr) {
        let fd = crate::context::open_quietly(path, libc::O_RDONLY);
        self.show(fd);
        // SAFETY: opened above.
        unsafe { libc::close(fd) };
    }

    /// `fsync`, and what is in the file then.
    pub fn sync_show(&self, fd: c_int) {
        self.fsync(fd);
        self.show(fd);
    }

    /// The epilogue of many cases: a write and an fsync must still work, and be seen.
    pub fn write_sync_show(&self, fd: c_int) {
        self.pwrite(fd, b'z', 100, 50);
        self.sync_show(fd);
    }

    /// Runs `body` in a child, and traces how that ends.
    pub fn in_child(&self, body: impl FnOnce() -> c_int) {
        self.note(process::ending(process::fork(body)));
    }

    /// Executes `contract child WORDS`, and traces how that ends.
    pub fn executed(&self, words: &[&str]) {
        self.note(process::ending(process::execute(words)));
    }
}

/// A buffer of `length` bytes `fill`, aligned to `alignment` (a power of two), `shift` bytes off.
pub struct Aligned {
    storage: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    /// Makes one.
    pub fn new(fill: u8, length: usize, alignment: usize, shift: usize) -> Aligned {
        let storage = vec![fill; length + 2 * alignment];
        let start = storage.as_ptr().align_offset(alignment) + shift;
        Aligned { storage, start, length }
    }

    /// Its address.
    pub fn address(&self) -> *const libc::c_void {
        self.storage[self.start..self.start + self.length].as_ptr().cast()
    }

    /// Its address, to read into.
    pub fn address_mut(&mut self) -> *mut libc::c_void {
        self.storage[self.start..self.start + self.length].as_mut_ptr().cast()
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.length]
    }
}

/// Two pages of which only the first may be touched.
pub fn half_mapped() -> *mut u8 {
    // SAFETY: a fresh anonymous mapping, its second page made inaccessible, never unmapped.
    unsafe {
        let address = libc::mmap(
            std::ptr::null_mut(),
            8192,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        libc::memset(address, i32::from(b'h'), 4096);
        libc::mprotect(address.cast::<u8>().add(4096).cast(), 4096, libc::PROT_NONE);
        address.cast()
    }
}
