//! The stripes of a [`Striped`] checksum, a line at a time (AVX-512 with VPCLMULQDQ).
//!
//! A CRC is a remainder of polynomials. What was read so far need not be divided at once: multiplied by a constant it is
//! moved behind what is read next (V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
//! Instruction", Intel, 2009). A register of 64 bytes holds 128 bits for each of the four stripes; four such registers,
//! for lines that take turns, keep the multiplier busy. CRC-32C's own instruction divides in the end.
//!
//! Input: lines, loaded by whoever calls, so that he can store them too. Output: the stripes, the same that one word after
//! the other would give.

use core::arch::x86_64::{
    __m512i, _mm_crc32_u64, _mm_set_epi64x, _mm512_broadcast_i32x4, _mm512_clmulepi64_epi128,
    _mm512_permutexvar_epi64, _mm512_set_epi64, _mm512_storeu_si512, _mm512_ternarylogic_epi64,
    _mm512_xor_si512,
};

use crate::LINE;
use crate::checksum::Striped;

/// Lines from which on this is quicker than a word at a time.
pub(crate) const WORTH: usize = 4;
/// Registers in use.
const WAYS: usize = 4;
/// What moves a stripe by one line, of which it has 128 bits: a factor for the first 64 bits, one for the second.
const NEAR: [i64; 2] = [factor(128 + 64), factor(128)];
/// The same by a line of each register.
const FAR: [i64; 2] = [factor(WAYS * 128 + 64), factor(WAYS * 128)];

/// Takes in `lines` lines, at least one; `load` is called once for each, with its offset in bytes.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq,sse4.2")]
pub(crate) fn lines(sum: &mut Striped, lines: usize, mut load: impl FnMut(usize) -> __m512i) {
    let mut next = 0;
    let mut line = || {
        next += LINE;
        by_stripe(load(next - LINE))
    };
    // Each stripe begins with what it was: that is added to the first four bytes.
    let [a, b, c, d] = sum.0.map(i64::from);
    let first = _mm512_xor_si512(line(), _mm512_set_epi64(0, d, 0, c, 0, b, 0, a));
    let (mut all, mut left) = (first, lines - 1);
    let near = factors(NEAR);
    if lines >= 2 * WAYS {
        let mut ways = [first, line(), line(), line()];
        left -= WAYS - 1;
        let far = factors(FAR);
        while left >= WAYS {
            for way in &mut ways {
                *way = fold(*way, far, line());
            }
            left -= WAYS;
        }
        all = fold(fold(fold(ways[0], near, ways[1]), near, ways[2]), near, ways[3]);
    }
    for _ in 0..left {
        all = fold(all, near, line());
    }
    let mut words = [0u64; LINE / 8];
    // SAFETY: an array of 64 bytes.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), all) };
    for (stripe, pair) in sum.0.iter_mut().zip(words.chunks_exact(2)) {
        *stripe = _mm_crc32_u64(_mm_crc32_u64(0, pair[0]), pair[1]) as u32;
    }
}

/// Words 0 and 4, which are the first stripe's, then the second's, and so on.
#[inline]
#[target_feature(enable = "avx512f")]
fn by_stripe(line: __m512i) -> __m512i {
    _mm512_permutexvar_epi64(_mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0), line)
}

/// Moves `sum` behind `next`, and adds that.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn fold(sum: __m512i, by: __m512i, next: __m512i) -> __m512i {
    const ADD_ALL: i32 = 0x96;
    let first = _mm512_clmulepi64_epi128::<0x00>(sum, by);
    let second = _mm512_clmulepi64_epi128::<0x11>(sum, by);
    _mm512_ternarylogic_epi64::<ADD_ALL>(first, second, next)
}

/// In each of a register's four quarters.
#[inline]
#[target_feature(enable = "avx512f")]
fn factors([first, second]: [i64; 2]) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi64x(second, first))
}

/// What a product that is to be moved by `bits` is multiplied with: the remainder of x to that power, less one because
/// the product of two numbers whose bits are reversed comes out shifted by one; bits reversed as all of this is.
const fn factor(bits: usize) -> i64 {
    /// CRC-32C's polynomial, x³² left out.
    const POLYNOMIAL: u32 = 0x1edc_6f41;
    let (mut remainder, mut power) = (1u32, 0);
    while power < bits - 1 {
        let carry = remainder >> 31 == 1;
        remainder = if carry { remainder << 1 ^ POLYNOMIAL } else { remainder << 1 };
        power += 1;
    }
    (remainder as u64).reverse_bits().cast_signed()
}

#[cfg(test)]
mod tests {
    use core::arch::x86_64::_mm512_loadu_si512;

    use super::*;
    use crate::cpu;

    #[target_feature(enable = "avx512f,vpclmulqdq,sse4.2")]
    fn folded(sum: &mut Striped, bytes: &[u8]) {
        // SAFETY: offsets of whole lines in `bytes`.
        lines(sum, bytes.len() / LINE, |at| unsafe { _mm512_loadu_si512(bytes.as_ptr().add(at).cast()) });
    }

    #[test]
    fn lines_at_a_time_and_words_at_a_time_agree() {
        if !cpu::folds() {
            return;
        }
        let data: Vec<u8> = (0..40 * LINE as u32).map(|i| (i * 7 + i / 251) as u8).collect();
        for lines in 1..=20 {
            for before in 0..20 {
                let (head, bytes) = data[..(before + lines) * LINE].split_at(before * LINE);
                let mut words = Striped::new();
                words.by_words(head);
                let mut folds = words;
                words.by_words(bytes);
                // SAFETY: the CPU was just asked.
                unsafe { folded(&mut folds, bytes) };
                assert_eq!(folds.0, words.0, "{lines} lines behind {before}");
            }
        }
    }
}
