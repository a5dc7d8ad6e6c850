//! Write-back of cache lines, and the fence that makes it count.
//!
//! Sources: Intel SDM vol. 1 §12 (persistent memory programming), Linux `arch/x86/include/asm/pmem.h`,
//! Arm ARM DDI 0487 (DC CVAP, DC CVAC, DSB).

use crate::cpu::{self, Flush};
use crate::{LINE, sim};

/// Which instruction [`Region`](crate::Region) uses on this CPU to write a line back.
pub fn flush_instruction() -> Flush {
    cpu::flush()
}

/// Waits until every earlier flush and streaming store of this thread is on the medium.
#[inline]
#[cfg_attr(feature = "sim", track_caller)]
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of the x86-64 baseline; the instruction touches no memory of ours.
    unsafe {
        core::arch::x86_64::_mm_sfence();
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier has no operands and no side effect but ordering.
    unsafe {
        core::arch::asm!("dsb sy", options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
    sim::fenced();
}

/// Starts the write-back of every line that holds a byte of `start..start + len`.
///
/// # Safety
/// The range must lie inside one live mapping.
#[inline]
pub(crate) unsafe fn flush_range(start: *const u8, len: usize) {
    let first = start as usize & !(LINE - 1);
    let end = start as usize + len;
    let how = cpu::flush();
    let mut line = first;
    while line < end {
        // SAFETY: the caller vouches for the range; a line never crosses a page, so it is mapped whole.
        unsafe { flush_line(line as *const u8, how) };
        line += LINE;
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn flush_line(line: *const u8, how: Flush) {
    use core::arch::asm;
    // SAFETY: `how` was detected on this CPU, so the instruction exists; the line is mapped (caller).
    unsafe {
        match how {
            Flush::Clwb => asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags)),
            Flush::ClflushOpt => {
                asm!("clflushopt [{}]", in(reg) line, options(nostack, preserves_flags));
            }
            _ => asm!("clflush [{}]", in(reg) line, options(nostack, preserves_flags)),
        }
    }
}

#[cfg(target_arch = "aarch64")]
#[inline]
unsafe fn flush_line(line: *const u8, how: Flush) {
    use core::arch::asm;
    // SAFETY: `how` was detected on this CPU; the line is mapped (caller); Linux allows both to programs.
    unsafe {
        match how {
            // `dc cvap`, in a way that assemblers for ARMv8.0 know too.
            Flush::DcCvap => asm!("sys #3, c7, c12, #1, {}", in(reg) line, options(nostack, preserves_flags)),
            _ => asm!("dc cvac, {}", in(reg) line, options(nostack, preserves_flags)),
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
unsafe fn flush_line(_line: *const u8, _how: Flush) {}
