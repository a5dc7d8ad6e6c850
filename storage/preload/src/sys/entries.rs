//! A directory's entries, as getdents64(2) fills a buffer with them.

use core::ffi::{CStr, c_int};
use core::mem::offset_of;

use libc::dirent64;

use super::call::unsafe_call;
use super::calls::{close, openat};

/// Where in an entry its name begins.
pub const NAME: usize = offset_of!(dirent64, d_name);
const LENGTH: usize = offset_of!(dirent64, d_reclen);
/// Bytes of entries that are looked at a time.
const CHUNK: usize = 2048;

/// Bytes of the entry that begins there; `None` at the end.
pub fn length_at(all: &[u8], from: usize) -> Option<usize> {
    let len = all.get(from + LENGTH..from + LENGTH + 2)?;
    let len = usize::from(u16::from_ne_bytes([len[0], len[1]]));
    (len > NAME && from + len <= all.len()).then_some(len)
}

/// The name of the entry in these bytes.
pub fn name_in(entry: &[u8]) -> &CStr {
    entry.get(NAME..).and_then(|name| CStr::from_bytes_until_nul(name).ok()).unwrap_or(c"")
}

/// True if `is` holds for the name of one of the entries that `dir`, an open directory, has from its position on. Asks for
/// no more than it needs.
pub fn any_entry(dir: c_int, mut is: impl FnMut(&CStr) -> bool) -> bool {
    let mut chunk = Chunk([0; CHUNK]);
    while let Ok(filled @ 1..) = unsafe_call!(SYS_getdents64, dir, chunk.0.as_mut_ptr(), CHUNK) {
        let mut from = 0;
        while let Some(len) = length_at(&chunk.0[..filled], from) {
            if is(name_in(&chunk.0[from..from + len])) {
                return true;
            }
            from += len;
        }
    }
    false
}

/// Calls `each` for whatever is open, by the names in /proc/self/fd.
pub fn each_open(each: impl Fn(c_int)) {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let Ok(dir) = openat(libc::AT_FDCWD, c"/proc/self/fd", flags, 0) else {
        return (0..1024).for_each(each);
    };
    any_entry(dir, |name| {
        number(name.to_bytes()).filter(|fd| *fd != dir).into_iter().for_each(&each);
        false
    });
    close(dir);
}

fn number(name: &[u8]) -> Option<c_int> {
    core::str::from_utf8(name).ok()?.parse().ok()
}

/// Aligned as entries are.
#[repr(C, align(8))]
struct Chunk([u8; CHUNK]);
