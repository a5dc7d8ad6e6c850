//! How a hook is entered and left, so that a thread that is cancelled leaves nothing half done.
//!
//! glibc cancels a thread by unwinding its stack, from inside a function of libc that is a cancellation point, or, with
//! the asynchronous type, from any instruction. Rust's frames must not be unwound, and what they hold would stay held.
//! So each exported function is a few instructions that jump into one frame of assembly, which has unwind tables:
//!
//! ```text
//! program ─▶ write ─▶ frame ─▶ pthread_testcancel                   a cancellation point's; unwinds
//!                       ├────▶ Rust: the course of the call          cancellation waits meanwhile
//!                       └────▶ libc's own write, if it "passes"      cancelled while it blocks; unwinds
//!                               └▶ Rust: what is done afterwards     cancellation waits meanwhile
//! ```
//!
//! While Rust works the thread has the deferred type, and meets no cancellation point: system calls are made by
//! instruction, and what is called of libc is [`undisturbed`].
//!
//! libc's functions are bound by our constructor: before it runs nothing passes, and nobody is cancelled.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use core::ffi::{CStr, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// Functions that calls pass on to: POSIX's cancellation points, and others that may block in ways of their own.
const NAMES: [&CStr; 29] = [
    c"__open_2",
    c"__openat_2",
    c"accept",
    c"accept4",
    c"close",
    c"copy_file_range",
    c"creat",
    c"fclose",
    c"fcntl",
    c"fopen",
    c"freopen",
    c"ioctl",
    c"lio_listio",
    c"open",
    c"open_by_handle_at",
    c"openat",
    c"pread",
    c"preadv",
    c"preadv2",
    c"pwrite",
    c"pwritev",
    c"pwritev2",
    c"recvmmsg",
    c"recvmsg",
    c"sendfile",
    c"splice",
    c"syscall",
    c"write",
    c"writev",
];
static NEXT: [AtomicPtr<c_void>; NAMES.len()] = [const { AtomicPtr::new(null_mut()) }; NAMES.len()];

/// Most arguments that a hook has.
const ARGUMENTS: usize = 7;
/// What a cancelled thread would be unwound from, and how it is held off.
static TEST: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static TYPE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static STATE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// PTHREAD_CANCEL_DEFERRED and PTHREAD_CANCEL_DISABLE, alike in glibc and musl.
const DEFERRED: c_int = 0;
const DISABLED: c_int = 1;

/// `pthread_setcanceltype` and `pthread_setcancelstate`.
type Setter = unsafe extern "C" fn(c_int, *mut c_int) -> c_int;

/// A hook.
#[repr(C)]
pub struct Hook {
    /// Not 0: a cancellation point.
    pub is_point: usize,
    /// What is done after libc's function, if there is anything.
    pub after: Option<unsafe extern "C" fn(&mut Frame)>,
    /// The call, as far as it is ours.
    pub course: unsafe extern "C" fn(&mut Frame),
}

/// A call of a hook.
#[repr(C)]
pub struct Frame {
    /// As many as the hook has; what the others are means nothing.
    arguments: [usize; ARGUMENTS],
    hook: &'static Hook,
    /// libc's function, which is to go on.
    next: *mut c_void,
    result: usize,
    /// The function that gives the thread its own type back, if that is another one.
    restore: *mut c_void,
    was: c_int,
}

impl Frame {
    /// The arguments.
    pub fn arguments(&self) -> [usize; ARGUMENTS] {
        self.arguments
    }

    /// What the call returns, or libc's function returned.
    pub fn result(&self) -> usize {
        self.result
    }

    /// The call is done.
    pub fn answer(&mut self, result: impl Word) {
        self.result = result.word();
    }

    /// The call is libc's: with the arguments as they came.
    pub fn pass(&mut self, next: *mut c_void) {
        self.next = next;
    }

    /// Holds cancellation off.
    #[inline]
    fn shield(&mut self) {
        self.restore = null_mut();
        self.was = DEFERRED;
        let setter = TYPE.load(Relaxed);
        if !setter.is_null() {
            // SAFETY: `pthread_setcanceltype`, which has this type; to hold off never unwinds.
            unsafe { core::mem::transmute::<*mut c_void, Setter>(setter)(DEFERRED, &raw mut self.was) };
        }
        if self.was != DEFERRED {
            self.restore = setter;
        }
    }
}

unsafe extern "C" fn begin(frame: &mut Frame) {
    frame.next = null_mut();
    frame.shield();
    // SAFETY: the hook's own arguments.
    unsafe { (frame.hook.course)(frame) }
}

unsafe extern "C" fn finish(frame: &mut Frame) {
    frame.shield();
    if let Some(after) = frame.hook.after {
        // SAFETY: as above, and libc's result.
        unsafe { after(frame) }
    }
}

/// Runs `call`, which calls libc, in the course of a hook: no cancellation point inside of it is one.
pub fn undisturbed<R>(call: impl FnOnce() -> R) -> R {
    let setter = STATE.load(Relaxed);
    if setter.is_null() {
        return call();
    }
    // SAFETY: `pthread_setcancelstate`, which has this type.
    let set = unsafe { core::mem::transmute::<*mut c_void, Setter>(setter) };
    let mut was = DISABLED;
    // SAFETY: a live integer. Neither of the two unwinds: the type is deferred here.
    unsafe { set(DISABLED, &raw mut was) };
    let result = call();
    // SAFETY: as above.
    unsafe { set(was, null_mut()) };
    result
}

/// Binds what calls pass on to. To be called by our constructor.
pub fn bind() {
    // SAFETY: dlsym reads a C string.
    let find = |name: &CStr| unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    for (at, name) in NEXT.iter().zip(NAMES) {
        at.store(find(name), Relaxed);
    }
    STATE.store(find(c"pthread_setcancelstate"), Relaxed);
    TYPE.store(find(c"pthread_setcanceltype"), Relaxed);
    TEST.store(find(c"pthread_testcancel"), Relaxed);
}

/// libc's function, once it is bound.
#[inline]
pub fn next(index: usize) -> Option<*mut c_void> {
    Some(NEXT[index].load(Relaxed)).filter(|at| !at.is_null())
}

/// Where a function stands in [`NAMES`]; found by the compiler.
pub const fn index(name: &str) -> usize {
    let mut at = 0;
    while at < NAMES.len() {
        if is_same(NAMES[at].to_bytes(), name.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("a function that passes must be among NAMES")
}

const fn is_same(left: &[u8], right: &[u8]) -> bool {
    let mut i = 0;
    while i < left.len() && i < right.len() && left[i] == right[i] {
        i += 1;
    }
    i == left.len() && i == right.len()
}

/// What fits the register that a function returns.
pub trait Word {
    /// As it stands there.
    fn word(self) -> usize;
}

impl Word for () {
    fn word(self) -> usize {
        0
    }
}

impl Word for c_int {
    fn word(self) -> usize {
        self as usize
    }
}

impl Word for isize {
    fn word(self) -> usize {
        self as usize
    }
}

impl Word for i64 {
    fn word(self) -> usize {
        self as usize
    }
}

impl<T> Word for *mut T {
    fn word(self) -> usize {
        self as usize
    }
}

/// Bytes below the frame: where an argument goes that has no register.
const BELOW: usize = 16;
const SIZE: usize = BELOW + size_of::<Frame>();
const _: () = assert!(SIZE.is_multiple_of(16));

/// An exported function's instructions: the hook, and on to the frame.
#[cfg(target_arch = "x86_64")]
macro_rules! enter {
    ($hook:path) => { core::arch::naked_asm!("lea rax, [rip + {hook}]", "jmp seawall_hook", hook = sym $hook) };
}
#[cfg(target_arch = "aarch64")]
macro_rules! enter {
    ($hook:path) => {
        core::arch::naked_asm!(
            "adrp x16, {hook}", "add x16, x16, :lo12:{hook}", "b seawall_hook", hook = sym $hook
        )
    };
}
pub(crate) use enter;
