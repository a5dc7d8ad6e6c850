//! Canonical text: the same for every right run, readable when two runs differ.

use std::ffi::c_int;
use std::fmt::Write as _;

/// Runs of equal bytes shown before a content summary is cut short.
const RUNS_SHOWN: usize = 14;

/// `ENOENT` for 2, and so on.
pub fn errno_name(errno: c_int) -> String {
    unsafe extern "C" {
        fn strerrorname_np(errno: c_int) -> *const libc::c_char;
    }
    // SAFETY: glibc returns a static string, or null for numbers it does not know.
    let name = unsafe { strerrorname_np(errno) };
    if name.is_null() {
        return format!("errno {errno}");
    }
    // SAFETY: not null, NUL-terminated and static.
    unsafe { std::ffi::CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

/// FNV-1a, 64 bits: enough to tell two contents apart.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// `A*4096 .*512 B*3 #89abcdef`: runs of bytes (zero is a dot) and the hash of everything.
pub fn summary(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    let mut shown = 0;
    while let Some(first) = rest.first() {
        if shown == RUNS_SHOWN {
            text.push_str("... ");
            break;
        }
        let run = rest.iter().take_while(|byte| *byte == first).count();
        let _ = write!(text, "{}*{run} ", printable(*first));
        rest = &rest[run..];
        shown += 1;
    }
    let _ = write!(text, "#{:016x}", hash(bytes));
    text
}

/// A byte as one readable word.
pub fn printable(byte: u8) -> String {
    match byte {
        0 => ".".to_owned(),
        b'!'..=b'~' => char::from(byte).to_string(),
        other => format!("\\x{other:02x}"),
    }
}
