//! The instruction.

use core::ffi::c_long;

use seawall_core::Errno;

/// Longest errno the kernel returns.
const ERRNO_MAX: usize = 4095;

/// Makes system call `nr`.
///
/// # Safety
/// As the call itself: the kernel reads and writes the memory that pointer arguments name.
#[inline]
pub unsafe fn call<const N: usize>(nr: c_long, args: [usize; N]) -> Result<usize, Errno> {
    let mut six = [0; 6];
    six[..N].copy_from_slice(&args);
    // SAFETY: the caller's.
    let answer = unsafe { instruction(nr as usize, six) };
    if answer > usize::MAX - ERRNO_MAX {
        return Err(Errno::from_raw_os_error(-(answer as isize) as i32));
    }
    Ok(answer)
}

#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn instruction(nr: usize, [a, b, c, d, e, f]: [usize; 6]) -> usize {
    let answer;
    // SAFETY: the system call ABI of x86-64; rcx and r11 are its only scratch registers.
    unsafe {
        core::arch::asm!("syscall",
            inlateout("rax") nr => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    answer
}

#[cfg(target_arch = "aarch64")]
#[inline]
unsafe fn instruction(nr: usize, [a, b, c, d, e, f]: [usize; 6]) -> usize {
    let answer;
    // SAFETY: the system call ABI of aarch64; every register but x0 is kept.
    unsafe {
        core::arch::asm!("svc 0",
            in("x8") nr, inlateout("x0") a => answer,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f, options(nostack));
    }
    answer
}

/// `unsafe_call!(SYS_name, arguments…)`: [`call`] by name. The macro writes `unsafe` itself, so whoever uses it answers for
/// this: the application made this call with these arguments, or they are ours, and what the kernel reads or writes by
/// them is alive and nobody else's meanwhile. Where a number comes from elsewhere, `call` is called.
macro_rules! unsafe_call {
    ($nr:ident $(, $arg:expr)* $(,)?) => {{
        #[allow(unused_unsafe)]
        // SAFETY: as above: whoever wrote the name of this macro answers for it.
        unsafe { $crate::sys::call(libc::$nr, [$($arg as usize),*]) }
    }};
}
pub(crate) use unsafe_call;
