//! What this CPU can do, found once and remembered.
//!
//! `no_std` code has no feature-detection macro, so x86-64 asks CPUID itself, and aarch64 the identification
//! registers, which Linux lets every program read (Documentation/arch/arm64/cpu-feature-registers.rst).

use core::sync::atomic::{AtomicU8, Ordering};

/// The instruction that writes a cache line back to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// `clwb`: writes back and keeps the line cached.
    Clwb,
    /// `clflushopt`: writes back and evicts, weakly ordered.
    ClflushOpt,
    /// `clflush`: writes back and evicts, ordered; every x86-64 CPU has it.
    Clflush,
    /// `dc cvap` (aarch64, ARMv8.2): cleans the line to the point of persistence.
    DcCvap,
    /// `dc cvac` (aarch64): cleans the line to the point of coherency, which is as far as such a CPU goes.
    DcCvac,
    /// No such instruction is known for this architecture: persistent memory cannot be used on it.
    None,
}

const KNOWN: u8 = 0x80;
const CRC32C: u8 = 0x01;
#[cfg(target_arch = "x86_64")]
const CLWB: u8 = 0x02;
#[cfg(target_arch = "x86_64")]
const CLFLUSHOPT: u8 = 0x04;
#[cfg(target_arch = "x86_64")]
const FOLDS: u8 = 0x08;
#[cfg(target_arch = "aarch64")]
const CVAP: u8 = 0x02;

/// Zero until asked once; then [`KNOWN`] and the feature bits. Racing first callers store the same value.
static FEATURES: AtomicU8 = AtomicU8::new(0);

#[inline]
fn features() -> u8 {
    match FEATURES.load(Ordering::Relaxed) {
        0 => detect(),
        known => known,
    }
}

#[cold]
fn detect() -> u8 {
    let found = KNOWN | ask();
    FEATURES.store(found, Ordering::Relaxed);
    found
}

#[cfg(target_arch = "x86_64")]
fn ask() -> u8 {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    let mut bits = 0;
    let leaf1 = __cpuid(1).ecx;
    if leaf1 & (1 << 20) != 0 {
        bits |= CRC32C;
    }
    if __cpuid(0).eax >= 7 {
        let leaf7 = __cpuid_count(7, 0);
        if leaf7.ebx & (1 << 24) != 0 {
            bits |= CLWB;
        }
        if leaf7.ebx & (1 << 23) != 0 {
            bits |= CLFLUSHOPT;
        }
        // AVX512F and VPCLMULQDQ, and OSXSAVE.
        let has_wide = leaf7.ebx & (1 << 16) != 0 && leaf7.ecx & (1 << 10) != 0 && leaf1 & (1 << 27) != 0;
        // SAFETY: OSXSAVE was just seen.
        if has_wide && bits & CRC32C != 0 && unsafe { saves_wide_registers() } {
            bits |= FOLDS;
        }
    }
    bits
}

/// True if the kernel saves the 64-byte registers: SSE, AVX, and three states of AVX-512 (Intel's manual, volume 1,
/// 15.2).
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "xsave")]
fn saves_wide_registers() -> bool {
    const STATES: u64 = 0b1110_0110;
    // SAFETY: register 0 exists wherever the instruction does.
    unsafe { core::arch::x86_64::_xgetbv(0) & STATES == STATES }
}

#[cfg(target_arch = "aarch64")]
fn ask() -> u8 {
    let (isar0, isar1): (u64, u64);
    // SAFETY: Linux emulates these reads for every program since 4.11, older than what Seawall runs on; they
    // touch no memory.
    unsafe {
        core::arch::asm!(
            "mrs {}, id_aa64isar0_el1",
            "mrs {}, id_aa64isar1_el1",
            out(reg) isar0,
            out(reg) isar1,
            options(nomem, nostack, preserves_flags)
        );
    }
    let crc = if isar0 >> 16 & 0xf != 0 { CRC32C } else { 0 };
    let cvap = if isar1 & 0xf != 0 { CVAP } else { 0 };
    crc | cvap
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn ask() -> u8 {
    0
}

/// True if the CPU computes CRC-32C in hardware (SSE 4.2; the CRC32 extension of ARMv8).
#[inline]
pub(crate) fn has_crc32c() -> bool {
    features() & CRC32C != 0
}

/// True if the CPU multiplies polynomials in registers of 64 bytes (AVX-512 with VPCLMULQDQ) and computes CRC-32C.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn folds() -> bool {
    features() & FOLDS != 0
}

/// The best flush instruction of this CPU.
#[inline]
pub(crate) fn flush() -> Flush {
    #[cfg(target_arch = "x86_64")]
    let flush = match features() {
        f if f & CLWB != 0 => Flush::Clwb,
        f if f & CLFLUSHOPT != 0 => Flush::ClflushOpt,
        _ => Flush::Clflush,
    };
    #[cfg(target_arch = "aarch64")]
    let flush = if features() & CVAP != 0 { Flush::DcCvap } else { Flush::DcCvac };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let flush = Flush::None;
    flush
}
