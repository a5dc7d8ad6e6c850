//! System calls by instruction: what no library sees.

use std::ffi::{CStr, c_int, c_long};

/// Makes a call of up to four words.
///
/// # Safety
/// As the call.
#[cfg(target_arch = "x86_64")]
unsafe fn call(number: c_long, [a, b, c, d]: [usize; 4]) -> isize {
    let answer;
    // SAFETY: the system call ABI of x86-64; the caller's for the rest.
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") number as usize => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    answer
}

/// Makes a call of up to four words.
///
/// # Safety
/// As the call.
#[cfg(target_arch = "aarch64")]
unsafe fn call(number: c_long, [a, b, c, d]: [usize; 4]) -> isize {
    let answer;
    // SAFETY: the system call ABI of aarch64; the caller's for the rest.
    unsafe {
        std::arch::asm!("svc 0", in("x8") number as usize, inlateout("x0") a => answer,
            in("x1") b, in("x2") c, in("x3") d, options(nostack));
    }
    answer
}

/// close(2).
pub fn close(fd: c_int) {
    // SAFETY: a number; whoever opened it is to find out.
    unsafe { call(libc::SYS_close, [fd as usize, 0, 0, 0]) };
}

/// openat(2).
pub fn open(path: &CStr, flags: c_int) -> c_int {
    let words = [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, 0];
    // SAFETY: a NUL-terminated path that outlives the call.
    unsafe { call(libc::SYS_openat, words) as c_int }
}
