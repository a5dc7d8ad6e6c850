//! What this CPU can do, found once and remembered.
//!
//! `no_std` code has no feature-detection macro, so x86-64 asks CPUID itself; aarch64 uses only
//! instructions that every ARMv8.0 core has.

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
    /// `dc cvac` (aarch64): cleans the line to the point of coherency.
    DcCvac,
    /// No such instruction is known for this architecture: persistent memory cannot be used on it.
    None,
}

const KNOWN: u8 = 0x80;
const SSE42: u8 = 0x01;
const CLWB: u8 = 0x02;
const CLFLUSHOPT: u8 = 0x04;

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
    if __cpuid(1).ecx & (1 << 20) != 0 {
        bits |= SSE42;
    }
    if __cpuid(0).eax >= 7 {
        let leaf7 = __cpuid_count(7, 0);
        if leaf7.ebx & (1 << 24) != 0 {
            bits |= CLWB;
        }
        if leaf7.ebx & (1 << 23) != 0 {
            bits |= CLFLUSHOPT;
        }
    }
    bits
}

#[cfg(not(target_arch = "x86_64"))]
fn ask() -> u8 {
    0
}

/// True if the CPU computes CRC-32C in hardware (SSE 4.2).
#[inline]
pub(crate) fn has_crc32c() -> bool {
    features() & SSE42 != 0
}

/// The best flush instruction of this CPU.
#[inline]
pub(crate) fn flush() -> Flush {
    if cfg!(target_arch = "x86_64") {
        match features() {
            f if f & CLWB != 0 => Flush::Clwb,
            f if f & CLFLUSHOPT != 0 => Flush::ClflushOpt,
            _ => Flush::Clflush,
        }
    } else if cfg!(target_arch = "aarch64") {
        Flush::DcCvac
    } else {
        Flush::None
    }
}
