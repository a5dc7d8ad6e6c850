//! Copies into memory that is anybody's: the page cache, by way of a mapping.
//!
//! Input: bytes and where they go. Output: they are there, for all processors. Nothing is persisted, and nothing
//! checksummed: that is `copy`'s.

use crate::LINE;
#[cfg(target_arch = "x86_64")]
use crate::{copy::store_lines, cpu};

/// Copies to where nobody looks soon, past the cache: the lines of the target are not read first, which takes half of the
/// time of a plain copy where they are not in the cache. Visible in order to all processors, like a plain copy.
///
/// # Safety
/// Of `target` as many bytes as `source` has must lie inside one live, writable mapping, apart from `source`.
#[inline]
pub unsafe fn copy_past_cache(target: *mut u8, source: &[u8]) {
    let head = target.align_offset(LINE).min(source.len());
    let (head, rest) = source.split_at(head);
    let (lines, tail) = rest.split_at(rest.len() / LINE * LINE);
    // SAFETY: parts of what the caller vouches for, one behind the other; the lines are aligned.
    unsafe {
        core::ptr::copy_nonoverlapping(head.as_ptr(), target, head.len());
        let target = target.add(head.len());
        stream_lines(target, lines);
        core::ptr::copy_nonoverlapping(tail.as_ptr(), target.add(lines.len()), tail.len());
    }
    // Such stores come in no order otherwise, not even before the release of a lock.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe {
        core::arch::x86_64::_mm_sfence();
    }
}

/// # Safety
/// As for [`copy_past_cache`], and `target` must be aligned to lines; `lines` must be whole lines.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn stream_lines(target: *mut u8, lines: &[u8]) {
    if cpu::folds() {
        // SAFETY: the CPU was just asked; the rest is the caller's.
        unsafe { stream_lines_wide(target, lines) };
    } else {
        // SAFETY: the caller's.
        unsafe { store_lines(target, lines) };
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn stream_lines_wide(target: *mut u8, lines: &[u8]) {
    use core::arch::x86_64::{_mm256_zeroupper, _mm512_loadu_si512, _mm512_stream_si512};
    for at in (0..lines.len()).step_by(LINE) {
        // SAFETY: inside both ranges, and aligned (caller).
        unsafe {
            let line = _mm512_loadu_si512(lines.as_ptr().add(at).cast());
            _mm512_stream_si512(target.add(at).cast(), line);
        }
    }
    _mm256_zeroupper();
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
unsafe fn stream_lines(target: *mut u8, lines: &[u8]) {
    // SAFETY: the caller's.
    unsafe { core::ptr::copy_nonoverlapping(lines.as_ptr(), target, lines.len()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_stretch_arrives_and_nothing_beside_it() {
        let source: Vec<u8> = (0..1000u32).map(|i| (i * 7 + i / 251) as u8).collect();
        for from in [0, 1, 5] {
            for at in [0, 1, 63, 64, 100] {
                for len in [0, 1, 63, 64, 65, 127, 128, 300, 700] {
                    let mut to = vec![0xaa; 900];
                    // SAFETY: both stretches lie inside of their vectors.
                    unsafe { copy_past_cache(to.as_mut_ptr().add(at), &source[from..from + len]) };
                    let around = |byte: usize| byte < at || byte >= at + len;
                    assert!((0..to.len()).filter(|byte| around(*byte)).all(|byte| to[byte] == 0xaa));
                    assert_eq!(to[at..at + len], source[from..from + len], "{len} at {at} from {from}");
                }
            }
        }
    }
}
