//! SIGBUS: a store of ours hit a page that is gone. The mapping is replaced by memory, the store goes on into
//! that, and the row sees that it was in vain. Any other SIGBUS goes to whom it went before.
//!
//! A program that puts up a handler of its own later on gets ours as the old one, as from any library.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{
    AtomicI32, AtomicU32, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

use super::{Row, TABLE};
use crate::sys::{self, unsafe_call};

const UNASKED: u32 = 0;
const ASKING: u32 = 1;
const STANDS: u32 = 2;
const REFUSED: u32 = 3;
static STATE: AtomicU32 = AtomicU32::new(UNASKED);

/// What handled the signal before.
static BEFORE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static BEFORE_FLAGS: AtomicI32 = AtomicI32::new(0);

/// Puts up the handler at the first call. True if it stands.
pub fn stand() -> bool {
    if STATE.compare_exchange(UNASKED, ASKING, AcqRel, Acquire).is_ok() {
        let state = match sys::handle(libc::SIGBUS, caught) {
            Some(before) => {
                BEFORE.store(before.sa_sigaction, Relaxed);
                BEFORE_FLAGS.store(before.sa_flags, Release);
                STANDS
            }
            None => REFUSED,
        };
        STATE.store(state, Release);
    }
    STATE.load(Acquire) == STANDS
}

extern "C" fn caught(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo; `si_addr` is set for faults, whose codes are positive.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let ours = TABLE.iter().find(|row| code > 0 && row.is_at(address));
    match ours {
        Some(row) if row.replace() => {}
        _ => pass_on(signal, info, context, code),
    }
}

impl Row {
    fn is_at(&self, address: usize) -> bool {
        let (at, len) = (self.at.load(Relaxed), self.len.load(Acquire));
        len != 0 && (at..at + len).contains(&address)
    }

    /// Memory in place of the mapping.
    fn replace(&self) -> bool {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // Of a whole window hardly a page will be used: nobody shall be asked to have memory for all of it.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let (at, len) = (self.at.load(Relaxed), self.len.load(Relaxed));
        self.broken.store(true, Release);
        unsafe_call!(SYS_mmap, at, len, prot, flags, -1isize, 0).is_ok()
    }
}

fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void, code: c_int) {
    let takes_info = BEFORE_FLAGS.load(Acquire) & libc::SA_SIGINFO != 0;
    match BEFORE.load(Relaxed) {
        libc::SIG_IGN if code <= 0 => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // The access is repeated, or the signal sent anew, and ends as it would have.
            sys::handle_by_default(signal);
            if code <= 0 {
                let _ = unsafe_call!(SYS_tgkill, sys::getpid(), sys::gettid(), signal);
            }
        }
        // SAFETY: the application's own handler, of the type that its flags say.
        handler if takes_info => unsafe {
            core::mem::transmute::<usize, sys::Handler>(handler)(signal, info, context);
        },
        // SAFETY: as above.
        handler => unsafe { core::mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal) },
    }
}
