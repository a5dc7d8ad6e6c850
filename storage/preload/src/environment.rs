//! The one environment variable: where the daemon's socket is.
//!
//! Found by our constructor in the arguments it gets, before the application can change them; a call that
//! comes earlier (another library's constructor) reads /proc/self/environ. Never through libc's `environ`,
//! which is not set that early.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use crate::loader;
use crate::sys::{self, unsafe_call};
use search::{NAME, Search};

mod search;

pub use search::SOCKET_PATH_MAX;

/// The value, byte by byte: racing finders store the same bytes. 0 in `LEN` means "not looked for yet",
/// 1 "not set", else its length plus one.
static VALUE: [AtomicU8; SOCKET_PATH_MAX] = [const { AtomicU8::new(0) }; SOCKET_PATH_MAX];
static LEN: AtomicUsize = AtomicUsize::new(0);

/// The path of the daemon's socket; `None` if the variable is unset or unusable.
pub fn socket(room: &mut [u8; SOCKET_PATH_MAX]) -> Option<&[u8]> {
    if LEN.load(Acquire) == 0 {
        search_proc();
    }
    let len = LEN.load(Acquire).saturating_sub(1);
    for (to, from) in room.iter_mut().zip(&VALUE[..len]) {
        *to = from.load(Relaxed);
    }
    (len > 0).then(|| &room[..len])
}

/// Takes the variable from the environment that the loader hands to constructors.
///
/// # Safety
/// `envp` is null or a null-terminated array of C strings.
pub unsafe fn take(envp: *const *const c_char) {
    if envp.is_null() || LEN.load(Relaxed) != 0 {
        return;
    }
    let mut at = envp;
    // SAFETY: the caller's: the walk ends at the null pointer.
    while let Some(var) = unsafe { (!(*at).is_null()).then(|| CStr::from_ptr(*at)) } {
        if let Some(value) = var.to_bytes().strip_prefix(NAME) {
            return remember(value);
        }
        // SAFETY: not the last element, so there is a next.
        at = unsafe { at.add(1) };
    }
    remember(b"");
}

/// There is none, whatever the environment says.
pub fn leave_unset() {
    remember(b"");
}

/// A value that does not fit a socket address counts as unset.
fn remember(value: &[u8]) {
    let len = if value.len() < SOCKET_PATH_MAX { value.len() } else { 0 };
    for (to, from) in VALUE.iter().zip(&value[..len]) {
        to.store(*from, Relaxed);
    }
    LEN.store(len + 1, Release);
}

fn search_proc() {
    if !loader::is_glibcs() {
        return remember(b"");
    }
    let Ok(fd) = sys::openat(libc::AT_FDCWD, c"/proc/self/environ", libc::O_RDONLY | libc::O_CLOEXEC, 0)
    else {
        return remember(b"");
    };
    let mut search = Search::default();
    let mut chunk = [0u8; 1024];
    'file: while let Ok(n @ 1..) = unsafe_call!(SYS_read, fd, chunk.as_mut_ptr(), chunk.len()) {
        for byte in &chunk[..n] {
            if search.step(*byte) {
                break 'file;
            }
        }
    }
    sys::close(fd);
    remember(search.value());
}
