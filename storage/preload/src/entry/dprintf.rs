//! dprintf and its kin format and write inside libc: the file stays out of the log until the process ends.
//!
//! They are variadic, and stable Rust cannot define such functions, so each is a few instructions: save the
//! argument registers, ask [`untracked`] for the real function, restore them, jump there.

use core::ffi::{c_int, c_void};

use crate::classify::hold_for_life;
use crate::real::Symbol;

macro_rules! trampolines {
    ($($name:ident = $real:literal;)+) => { $(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            unsafe extern "C" fn prepare(fd: c_int) -> *mut c_void {
                static SYMBOL: Symbol = Symbol::new($real);
                untracked(fd, &SYMBOL)
            }
            save_call_restore_jump!(prepare)
        }
    )+ };
}

/// Variadic calls pass the number of vector registers in al; the vector registers hold the floating-point
/// arguments.
#[cfg(target_arch = "x86_64")]
macro_rules! save_call_restore_jump {
    ($prepare:ident) => {
        core::arch::naked_asm!(
            "sub rsp, 200",
            "mov [rsp], rdi", "mov [rsp+8], rsi", "mov [rsp+16], rdx",
            "mov [rsp+24], rcx", "mov [rsp+32], r8", "mov [rsp+40], r9", "mov [rsp+48], rax",
            "movups [rsp+64], xmm0", "movups [rsp+80], xmm1", "movups [rsp+96], xmm2", "movups [rsp+112], xmm3",
            "movups [rsp+128], xmm4", "movups [rsp+144], xmm5", "movups [rsp+160], xmm6", "movups [rsp+176], xmm7",
            "call {prepare}",
            "mov r11, rax",
            "mov rdi, [rsp]", "mov rsi, [rsp+8]", "mov rdx, [rsp+16]",
            "mov rcx, [rsp+24]", "mov r8, [rsp+32]", "mov r9, [rsp+40]", "mov rax, [rsp+48]",
            "movups xmm0, [rsp+64]", "movups xmm1, [rsp+80]", "movups xmm2, [rsp+96]", "movups xmm3, [rsp+112]",
            "movups xmm4, [rsp+128]", "movups xmm5, [rsp+144]", "movups xmm6, [rsp+160]", "movups xmm7, [rsp+176]",
            "add rsp, 200",
            "jmp r11",
            prepare = sym $prepare,
        )
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! save_call_restore_jump {
    ($prepare:ident) => {
        core::arch::naked_asm!(
            "sub sp, sp, #208",
            "stp x0, x1, [sp]", "stp x2, x3, [sp, #16]", "stp x4, x5, [sp, #32]", "stp x6, x7, [sp, #48]",
            "stp q0, q1, [sp, #64]", "stp q2, q3, [sp, #96]", "stp q4, q5, [sp, #128]", "stp q6, q7, [sp, #160]",
            "str x30, [sp, #192]",
            "bl {prepare}",
            "mov x16, x0",
            "ldp x0, x1, [sp]", "ldp x2, x3, [sp, #16]", "ldp x4, x5, [sp, #32]", "ldp x6, x7, [sp, #48]",
            "ldp q0, q1, [sp, #64]", "ldp q2, q3, [sp, #96]", "ldp q4, q5, [sp, #128]", "ldp q6, q7, [sp, #160]",
            "ldr x30, [sp, #192]",
            "add sp, sp, #208",
            "br x16",
            prepare = sym $prepare,
        )
    };
}

trampolines! {
    dprintf = c"dprintf";
    vdprintf = c"vdprintf";
    __dprintf_chk = c"__dprintf_chk";
    __vdprintf_chk = c"__vdprintf_chk";
}

/// Holds the file, and finds the function that goes on.
fn untracked(fd: c_int, symbol: &Symbol) -> *mut c_void {
    hold_for_life(fd);
    symbol.find().unwrap_or(absent as *mut c_void)
}

/// What goes on in a libc that lacks the function.
extern "C" fn absent() -> c_int {
    crate::errno::set(seawall_core::Errno::NOSYS);
    -1
}
