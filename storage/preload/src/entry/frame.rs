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

use core::ffi::{CStr, c_int, c_void};
use core::mem::offset_of;
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

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".pushsection .text.seawall_hook,\"ax\",@progbits",
    ".globl seawall_hook",
    ".hidden seawall_hook",
    ".type seawall_hook,@function",
    // In: the hook in rax, the arguments where the caller put them. The seventh is above the return address, where
    // something is in any case.
    "seawall_hook:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "sub rsp, {size}",
    "mov [rsp + {arguments}], rdi",
    "mov [rsp + {arguments} + 8], rsi",
    "mov [rsp + {arguments} + 16], rdx",
    "mov [rsp + {arguments} + 24], rcx",
    "mov [rsp + {arguments} + 32], r8",
    "mov [rsp + {arguments} + 40], r9",
    "mov r10, [rbp + 16]",
    "mov [rsp + {arguments} + 48], r10",
    "mov [rsp + {hook}], rax",
    // Cancelled before anything is done.
    "cmp qword ptr [rax + {is_point}], 0",
    "je 2f",
    "mov rax, [rip + {test}]",
    "test rax, rax",
    "je 2f",
    "call rax",
    "2:",
    "lea rdi, [rsp + {frame}]",
    "call {begin}",
    // Cancellation is as it was; what came meanwhile acts here.
    "mov rax, [rsp + {restore}]",
    "test rax, rax",
    "je 3f",
    "mov edi, [rsp + {was}]",
    "xor esi, esi",
    "call rax",
    "3:",
    // libc's own.
    "mov r11, [rsp + {next}]",
    "test r11, r11",
    "je 4f",
    "mov rdi, [rsp + {arguments}]",
    "mov rsi, [rsp + {arguments} + 8]",
    "mov rdx, [rsp + {arguments} + 16]",
    "mov rcx, [rsp + {arguments} + 24]",
    "mov r8, [rsp + {arguments} + 32]",
    "mov r9, [rsp + {arguments} + 40]",
    "mov rax, [rsp + {arguments} + 48]",
    "mov [rsp], rax",
    "xor eax, eax", // No floating-point arguments, for those that are variadic.
    "call r11",
    "mov [rsp + {result}], rax",
    "mov rax, [rsp + {hook}]",
    "cmp qword ptr [rax + {after}], 0",
    "je 4f",
    "lea rdi, [rsp + {frame}]",
    "call {finish}",
    // Cancellation is as it was; what came meanwhile acts here.
    "mov rax, [rsp + {restore}]",
    "test rax, rax",
    "je 4f",
    "mov edi, [rsp + {was}]",
    "xor esi, esi",
    "call rax",
    "4:",
    "mov rax, [rsp + {result}]",
    "leave",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size seawall_hook, .-seawall_hook",
    ".popsection",
    size = const SIZE,
    frame = const BELOW,
    arguments = const BELOW + offset_of!(Frame, arguments),
    hook = const BELOW + offset_of!(Frame, hook),
    next = const BELOW + offset_of!(Frame, next),
    result = const BELOW + offset_of!(Frame, result),
    restore = const BELOW + offset_of!(Frame, restore),
    was = const BELOW + offset_of!(Frame, was),
    is_point = const offset_of!(Hook, is_point),
    after = const offset_of!(Hook, after),
    test = sym TEST,
    begin = sym begin,
    finish = sym finish,
);

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".pushsection .text.seawall_hook,\"ax\",@progbits",
    ".globl seawall_hook",
    ".hidden seawall_hook",
    ".type seawall_hook,@function",
    // In: the hook in x16, the arguments in their registers.
    "seawall_hook:",
    ".cfi_startproc",
    "stp x29, x30, [sp, #-16]!",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset 29, -16",
    ".cfi_offset 30, -8",
    "mov x29, sp",
    ".cfi_def_cfa_register 29",
    "sub sp, sp, #{size}",
    "stp x0, x1, [sp, #{arguments}]",
    "stp x2, x3, [sp, #({arguments} + 16)]",
    "stp x4, x5, [sp, #({arguments} + 32)]",
    "str x6, [sp, #({arguments} + 48)]",
    "str x16, [sp, #{hook}]",
    // Cancelled before anything is done.
    "ldr x9, [x16, #{is_point}]",
    "cbz x9, 2f",
    "adrp x9, {test}",
    "ldr x9, [x9, :lo12:{test}]",
    "cbz x9, 2f",
    "blr x9",
    "2:",
    "add x0, sp, #{frame}",
    "bl {begin}",
    // Cancellation is as it was; what came meanwhile acts here.
    "ldr x9, [sp, #{restore}]",
    "cbz x9, 3f",
    "ldr w0, [sp, #{was}]",
    "mov x1, xzr",
    "blr x9",
    "3:",
    // libc's own.
    "ldr x9, [sp, #{next}]",
    "cbz x9, 4f",
    "ldp x0, x1, [sp, #{arguments}]",
    "ldp x2, x3, [sp, #({arguments} + 16)]",
    "ldp x4, x5, [sp, #({arguments} + 32)]",
    "ldr x6, [sp, #({arguments} + 48)]",
    "blr x9",
    "str x0, [sp, #{result}]",
    "ldr x9, [sp, #{hook}]",
    "ldr x9, [x9, #{after}]",
    "cbz x9, 4f",
    "add x0, sp, #{frame}",
    "bl {finish}",
    // As above.
    "ldr x9, [sp, #{restore}]",
    "cbz x9, 4f",
    "ldr w0, [sp, #{was}]",
    "mov x1, xzr",
    "blr x9",
    "4:",
    "ldr x0, [sp, #{result}]",
    "mov sp, x29",
    "ldp x29, x30, [sp], #16",
    ".cfi_def_cfa 31, 0",
    ".cfi_restore 29",
    ".cfi_restore 30",
    "ret",
    ".cfi_endproc",
    ".size seawall_hook, .-seawall_hook",
    ".popsection",
    size = const SIZE,
    frame = const BELOW,
    arguments = const BELOW + offset_of!(Frame, arguments),
    hook = const BELOW + offset_of!(Frame, hook),
    next = const BELOW + offset_of!(Frame, next),
    result = const BELOW + offset_of!(Frame, result),
    restore = const BELOW + offset_of!(Frame, restore),
    was = const BELOW + offset_of!(Frame, was),
    is_point = const offset_of!(Hook, is_point),
    after = const offset_of!(Hook, after),
    test = sym TEST,
    begin = sym begin,
    finish = sym finish,
);

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
