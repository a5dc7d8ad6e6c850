//! The innermost loop of `append`: copy whole lines past the cache and checksum them on the way.
//!
//! Non-temporal stores go to the medium without reading the line first and without evicting the database's
//! working set; the payload is loaded once for both purposes.

use crate::LINE;
use crate::checksum::Striped;
#[cfg(target_arch = "x86_64")]
use crate::cpu;

/// Copies `lines` to `target` and takes them into `sum`. Persisted after the next fence.
///
/// # Safety
/// `target..target + lines.len()` must lie inside one live, writable mapping that nothing else writes
/// meanwhile, and `target` must be line-aligned; `lines` must be whole lines.
#[inline]
pub(crate) unsafe fn copy_lines(target: *mut u8, lines: &[u8], sum: &mut Striped) {
    debug_assert!((target as usize).is_multiple_of(LINE) && lines.len().is_multiple_of(LINE));
    #[cfg(target_arch = "x86_64")]
    if cpu::has_crc32c() {
        // SAFETY: SSE 4.2 was just asked for; the rest is the caller's.
        unsafe { copy_lines_sse42(target, lines, sum) };
        return;
    }
    sum.update(lines);
    // SAFETY: the caller vouches for the target.
    unsafe { store_lines(target, lines) };
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
unsafe fn copy_lines_sse42(target: *mut u8, lines: &[u8], sum: &mut Striped) {
    use core::arch::x86_64::{__m128i, _mm_crc32_u64, _mm_loadu_si128, _mm_stream_si128};
    let mut stripe = sum.0.map(u64::from);
    let mut at = 0;
    while at < lines.len() {
        // SAFETY: `at + LINE <= lines.len()`, and the caller vouches for as much of the target;
        // 16-byte streaming stores need the alignment that line alignment gives.
        unsafe {
            let from = lines.as_ptr().add(at);
            let to = target.add(at);
            for part in 0..4 {
                let piece = _mm_loadu_si128(from.add(part * 16).cast::<__m128i>());
                _mm_stream_si128(to.add(part * 16).cast::<__m128i>(), piece);
            }
            for word in 0..8 {
                let value = from.add(word * 8).cast::<u64>().read_unaligned();
                stripe[word % 4] = _mm_crc32_u64(stripe[word % 4], value);
            }
        }
        at += LINE;
    }
    sum.0 = stripe.map(|s| s as u32);
}

/// Copies whole lines past the cache without a checksum. Persisted after the next fence.
///
/// # Safety
/// As for [`copy_lines`].
#[inline]
pub(crate) unsafe fn store_lines(target: *mut u8, lines: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        for at in (0..lines.len()).step_by(16) {
            // SAFETY: inside both ranges (caller), aligned as lines are; SSE2 is the baseline.
            unsafe {
                let piece = _mm_loadu_si128(lines.as_ptr().add(at).cast::<__m128i>());
                _mm_stream_si128(target.add(at).cast::<__m128i>(), piece);
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller vouches for the range.
    unsafe {
        core::ptr::copy_nonoverlapping(lines.as_ptr(), target, lines.len());
        crate::flush::flush_range(target, lines.len());
    }
}
