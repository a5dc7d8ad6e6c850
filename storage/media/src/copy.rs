//! The innermost loop of `append`: copy whole lines past the cache and checksum them on the way.
//!
//! Non-temporal stores go to the medium without reading the line first and without evicting the database's
//! working set.
//!
//! The application may change its buffer meanwhile: InnoDB goes on filling the last block of its redo log while it
//! is being written, PostgreSQL sets hint bits in pages it writes. write(2) allows that. So every word is loaded
//! exactly once, for the copy and for its checksum, or a record would be stored that nobody can read.

use crate::LINE;
use crate::checksum::Striped;
#[cfg(target_arch = "x86_64")]
use crate::{cpu, fold};

/// Copies `lines` to `target` and takes them into `sum`. Persisted after the next fence.
///
/// # Safety
/// `target..target + lines.len()` must lie inside one live, writable mapping that nothing else writes
/// meanwhile, and `target` must be line-aligned; `lines` must be whole lines.
#[inline]
pub(crate) unsafe fn copy_lines(target: *mut u8, lines: &[u8], sum: &mut Striped) {
    debug_assert!((target as usize).is_multiple_of(LINE) && lines.len().is_multiple_of(LINE));
    #[cfg(target_arch = "x86_64")]
    {
        if lines.len() >= fold::WORTH * LINE && cpu::folds() {
            // SAFETY: the CPU was just asked; the rest is the caller's.
            unsafe { copy_lines_wide(target, lines, sum) };
            return;
        }
        if cpu::has_crc32c() {
            // SAFETY: as above.
            unsafe { copy_lines_sse42(target, lines, sum) };
            return;
        }
    }
    // SAFETY: the caller's.
    unsafe { copy_lines_portable(target, lines, sum) };
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,vpclmulqdq,sse4.2")]
unsafe fn copy_lines_wide(target: *mut u8, lines: &[u8], sum: &mut Striped) {
    use core::arch::x86_64::{_mm256_zeroupper, _mm512_stream_si512};
    fold::lines(sum, lines.len() / LINE, |at| {
        // SAFETY: whole lines of `lines`; the caller vouches for as much of the target, and its alignment.
        unsafe {
            let line = load(lines.as_ptr().add(at));
            _mm512_stream_si512(target.add(at).cast(), line);
            line
        }
    });
    _mm256_zeroupper();
}

/// Loads a line once, as [`once`] does.
///
/// # Safety
/// `from` must be the begin of 64 bytes that can be read.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load(from: *const u8) -> core::arch::x86_64::__m512i {
    // SAFETY: the caller's.
    let mut line = unsafe { core::arch::x86_64::_mm512_loadu_si512(from.cast()) };
    // SAFETY: no instruction at all.
    unsafe { core::arch::asm!("/* {0} */", inout(zmm_reg) line, options(nomem, nostack, preserves_flags)) };
    line
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
unsafe fn copy_lines_sse42(target: *mut u8, lines: &[u8], sum: &mut Striped) {
    use core::arch::x86_64::{_mm_crc32_u64, _mm_stream_si64};
    let mut stripe = sum.0.map(u64::from);
    let mut at = 0;
    while at < lines.len() {
        for word in 0..LINE / 8 {
            // SAFETY: `at + LINE <= lines.len()`, and the caller vouches for as much of the target, which is
            // aligned as lines are.
            unsafe {
                let value = once(lines.as_ptr().add(at + word * 8).cast::<u64>().read_unaligned());
                _mm_stream_si64(target.add(at + word * 8).cast::<i64>(), value.cast_signed());
                stripe[word % 4] = _mm_crc32_u64(stripe[word % 4], value);
            }
        }
        at += LINE;
    }
    sum.0 = stripe.map(|s| s as u32);
}

/// The value as it was loaded: what comes out of here the compiler cannot load a second time.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn once(mut value: u64) -> u64 {
    // SAFETY: no instruction at all.
    unsafe { core::arch::asm!("/* {0} */", inout(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

unsafe fn copy_lines_portable(target: *mut u8, lines: &[u8], sum: &mut Striped) {
    for (i, line) in lines.chunks_exact(LINE).enumerate() {
        let mut copy = [0; LINE];
        copy.copy_from_slice(line);
        // Not to be read from where it came from again.
        let copy = core::hint::black_box(copy);
        sum.update(&copy);
        // SAFETY: the caller vouches for the target.
        unsafe { store_lines(target.add(i * LINE), &copy) };
    }
}

/// Copies whole lines out of shared memory into `into` and takes what was copied into `sum`.
///
/// # Safety
/// `source..source + into.len()` must lie inside one live mapping, apart from `into`; `into` must be whole lines.
#[inline]
pub(crate) unsafe fn read_lines(source: *const u8, into: &mut [u8], sum: &mut Striped) {
    debug_assert!(into.len().is_multiple_of(LINE));
    #[cfg(target_arch = "x86_64")]
    {
        if into.len() >= fold::WORTH * LINE && cpu::folds() {
            // SAFETY: the CPU was just asked; the rest is the caller's.
            unsafe { read_lines_wide(source, into, sum) };
            return;
        }
        if cpu::has_crc32c() {
            // SAFETY: as above.
            unsafe { read_lines_sse42(source, into, sum) };
            return;
        }
    }
    // SAFETY: the caller's.
    unsafe { read_lines_portable(source, into, sum) };
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,vpclmulqdq,sse4.2")]
unsafe fn read_lines_wide(source: *const u8, into: &mut [u8], sum: &mut Striped) {
    use core::arch::x86_64::{_mm256_zeroupper, _mm512_storeu_si512};
    fold::lines(sum, into.len() / LINE, |at| {
        // SAFETY: whole lines of `into`; the caller vouches for as much of the source.
        unsafe {
            let line = load(source.add(at));
            _mm512_storeu_si512(into.as_mut_ptr().add(at).cast(), line);
            line
        }
    });
    _mm256_zeroupper();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
unsafe fn read_lines_sse42(source: *const u8, into: &mut [u8], sum: &mut Striped) {
    use core::arch::x86_64::_mm_crc32_u64;
    let mut stripe = sum.0.map(u64::from);
    for (i, line) in into.chunks_exact_mut(LINE).enumerate() {
        for (j, word) in line.chunks_exact_mut(8).enumerate() {
            // SAFETY: as many bytes as `into` has; the caller vouches for the source.
            let value = once(unsafe { source.add(i * LINE + j * 8).cast::<u64>().read_unaligned() });
            word.copy_from_slice(&value.to_le_bytes());
            stripe[j % 4] = _mm_crc32_u64(stripe[j % 4], value);
        }
    }
    sum.0 = stripe.map(|s| s as u32);
}

unsafe fn read_lines_portable(source: *const u8, into: &mut [u8], sum: &mut Striped) {
    // SAFETY: the caller vouches for the source, and that the two are apart.
    unsafe { core::ptr::copy_nonoverlapping(source, into.as_mut_ptr(), into.len()) };
    // The copy is ours alone: nothing is read from the source again.
    sum.update(core::hint::black_box(into));
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

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    use super::*;

    #[test]
    fn what_is_read_is_what_is_checksummed_by_all_ways() {
        let source = Lines(core::array::from_fn(|i| (i * 7 + i / 251) as u8));
        let mut expected = Striped::new();
        expected.update(&source.0);
        for read in [read_lines as Read, read_lines_by_words, read_lines_portable] {
            let (mut into, mut sum) = ([0; 16 * LINE], Striped::new());
            // SAFETY: two arrays of one length.
            unsafe { read(source.0.as_ptr(), &mut into, &mut sum) };
            assert_eq!((into, sum.finish()), (source.0, expected.finish()));
        }
    }

    /// As on a CPU that cannot fold: less is copied word by word.
    unsafe fn copy_lines_by_words(target: *mut u8, lines: &[u8], sum: &mut Striped) {
        for (i, line) in lines.chunks_exact(LINE).enumerate() {
            // SAFETY: the caller's.
            unsafe { copy_lines(target.add(i * LINE), line, sum) };
        }
    }

    unsafe fn read_lines_by_words(source: *const u8, into: &mut [u8], sum: &mut Striped) {
        for (i, line) in into.chunks_exact_mut(LINE).enumerate() {
            // SAFETY: the caller's.
            unsafe { read_lines(source.add(i * LINE), line, sum) };
        }
    }

    type Read = unsafe fn(*const u8, &mut [u8], &mut Striped);
    type Copy = unsafe fn(*mut u8, &[u8], &mut Striped);

    #[repr(align(64))]
    struct Lines([u8; 16 * LINE]);

    /// A record whose source changes under its copy must still be readable: by all ways of copying.
    #[test]
    fn regression_what_is_stored_is_what_was_checksummed() {
        for copy in [copy_lines as Copy, copy_lines_by_words, copy_lines_portable] {
            let source: [AtomicU64; 16 * LINE / 8] = [const { AtomicU64::new(0) }; 16 * LINE / 8];
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for n in 1.. {
                        source.iter().for_each(|word| word.store(n, Relaxed));
                        if stop.load(Relaxed) {
                            break;
                        }
                    }
                });
                while source[0].load(Relaxed) == 0 {
                    std::thread::yield_now();
                }
                let mut is_same = true;
                for _ in 0..50_000 {
                    let (mut to, mut sum, mut again) =
                        (Lines([0; 16 * LINE]), Striped::new(), Striped::new());
                    // SAFETY: an application's buffer, as the kernel would see it; the target is our own.
                    let stored = unsafe {
                        let from = core::slice::from_raw_parts(source.as_ptr().cast::<u8>(), 16 * LINE);
                        copy(to.0.as_mut_ptr(), from, &mut sum);
                        crate::fence();
                        core::hint::black_box(to.0)
                    };
                    again.update(&stored);
                    is_same &= sum.finish() == again.finish();
                }
                stop.store(true, Relaxed);
                assert!(is_same);
            });
        }
    }
}
