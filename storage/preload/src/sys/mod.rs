//! System calls, by instruction: libc's own functions would come back into our hooks.
//!
//! Inputs: a number and up to six words. Outputs: what the kernel said. errno is not touched here.

mod call;
mod calls;
pub mod entries;
mod stat;

pub use call::call;
pub(crate) use call::unsafe_call;
pub use calls::*;
pub use entries::each_open;
pub use stat::*;

/// The value of the thread pointer: unique among a process's living threads, and free to read.
#[inline]
pub fn thread_pointer() -> usize {
    let value: usize;
    // SAFETY: the x86-64 TLS ABI keeps the thread pointer itself at fs:0.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("mov {}, fs:0", out(reg) value, options(nostack, readonly, preserves_flags))
    };
    // SAFETY: TPIDR_EL0 is readable at EL0.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) value, options(nomem, nostack, preserves_flags))
    };
    value
}
