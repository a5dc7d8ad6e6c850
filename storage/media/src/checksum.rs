//! The log's checksums: CRC-32C for headers, four interleaved CRC-32C stripes for payloads.
//!
//! A payload is checksummed while it is copied (see `copy`), and one CRC-32C chain would be the slowest
//! part of that: the instruction takes three cycles and depends on the one before. Four chains over every
//! fourth 8-byte word keep the unit busy, need no combining arithmetic, and read memory in order; a CPU that can
//! multiply polynomials takes whole lines at a time (see `fold`). Each chain detects what CRC-32C detects (RFC 3720
//! appendix B.4 gives the polynomial and test vectors).

#[cfg(target_arch = "x86_64")]
use crate::fold;
use crate::{LINE, cpu};

/// Chains a [`Striped`] checksum runs.
const STRIPES: usize = 4;

/// CRC-32C (Castagnoli) of `bytes`, as in RFC 3720.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        crc = step(crc, le_word(word));
    }
    for byte in words.remainder() {
        crc = soft_byte(crc, *byte);
    }
    !crc
}

/// Each bit of the result depends on all of `x`: splitmix64's finaliser (Steele, Lea and Flood, 2014). No two have the
/// same result.
#[inline]
pub const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A running payload checksum: word *i* of the payload goes to stripe *i* mod 4.
///
/// Payloads are padded with zeros to whole lines before they are checksummed; the padding counts.
#[derive(Clone, Copy, Debug)]
pub struct Striped(pub(crate) [u32; STRIPES]);

impl Striped {
    /// The checksum of nothing.
    pub const fn new() -> Self {
        Self([!0, 0x9e37_79b9, 0x7f4a_7c15, 0x85eb_ca6b])
    }

    /// Takes in whole lines.
    ///
    /// # Panics
    /// If `lines` is not a multiple of [`LINE`] long.
    #[inline]
    pub fn update(&mut self, lines: &[u8]) {
        assert!(lines.len().is_multiple_of(LINE), "checksummed in whole lines");
        #[cfg(target_arch = "x86_64")]
        if lines.len() >= fold::WORTH * LINE && cpu::folds() {
            // SAFETY: the CPU has the instructions, just asked.
            unsafe { update_by_folding(self, lines) };
            return;
        }
        self.by_words(lines);
    }

    /// The same, a word at a time.
    #[inline]
    pub(crate) fn by_words(&mut self, lines: &[u8]) {
        if cpu::has_crc32c() {
            // SAFETY: the CPU has the instruction, just asked.
            unsafe { update_in_hardware(&mut self.0, lines) };
            return;
        }
        for (i, word) in lines.chunks_exact(8).enumerate() {
            self.0[i % STRIPES] = soft_word(self.0[i % STRIPES], le_word(word));
        }
    }

    /// The 32-bit value stored in a record.
    pub fn finish(self) -> u32 {
        let [a, b, c, d] = self.0.map(|stripe| u64::from(!stripe));
        !step(step(!0, a | b << 32), c | d << 32)
    }
}

impl Default for Striped {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,vpclmulqdq,sse4.2")]
fn update_by_folding(sum: &mut Striped, lines: &[u8]) {
    use core::arch::x86_64::{_mm256_zeroupper, _mm512_loadu_si512};
    // SAFETY: offsets of whole lines in `lines`.
    fold::lines(sum, lines.len() / LINE, |at| unsafe { _mm512_loadu_si512(lines.as_ptr().add(at).cast()) });
    _mm256_zeroupper();
}

#[cfg_attr(target_arch = "x86_64", target_feature(enable = "sse4.2"))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "crc"))]
fn update_in_hardware(stripes: &mut [u32; STRIPES], lines: &[u8]) {
    // In variables of its own, so that the chains stay in registers.
    let mut s = *stripes;
    for group in lines.chunks_exact(STRIPES * 8) {
        for (stripe, word) in s.iter_mut().zip(group.chunks_exact(8)) {
            *stripe = hardware_word(*stripe, le_word(word));
        }
    }
    *stripes = s;
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse4.2")]
fn hardware_word(crc: u32, word: u64) -> u32 {
    core::arch::x86_64::_mm_crc32_u64(u64::from(crc), word) as u32
}

#[cfg(target_arch = "aarch64")]
#[inline]
#[target_feature(enable = "crc")]
fn hardware_word(crc: u32, word: u64) -> u32 {
    core::arch::aarch64::__crc32cd(crc, word)
}

/// Never called: `has_crc32c` is false for every such CPU.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn hardware_word(crc: u32, word: u64) -> u32 {
    soft_word(crc, word)
}

#[inline]
pub(crate) fn le_word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(word)
}

/// One 8-byte step of CRC-32C, in hardware where there is any.
#[inline]
fn step(crc: u32, word: u64) -> u32 {
    if cpu::has_crc32c() {
        // SAFETY: the CPU has the instruction, just asked.
        return unsafe { hardware_word(crc, word) };
    }
    soft_word(crc, word)
}

fn soft_word(crc: u32, word: u64) -> u32 {
    word.to_le_bytes().into_iter().fold(crc, soft_byte)
}

fn soft_byte(crc: u32, byte: u8) -> u32 {
    TABLE[usize::from(crc as u8 ^ byte)] ^ (crc >> 8)
}

static TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    /// CRC-32C's polynomial, bits reversed.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720, appendix B.4.
    #[test]
    fn crc32c_agrees_with_the_rfc() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&ascending), 0x46dd_794e);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn hardware_and_software_stripes_agree() {
        let data: Vec<u8> = (0..4096u32).map(|i| (i * 7 + i / 251) as u8).collect();
        let mut striped = Striped::new();
        striped.update(&data);
        let mut soft = Striped::new();
        for (i, word) in data.chunks_exact(8).enumerate() {
            soft.0[i % STRIPES] = soft_word(soft.0[i % STRIPES], le_word(word));
        }
        assert_eq!(striped.finish(), soft.finish());
    }

    #[test]
    fn every_single_bit_flip_is_seen() {
        let data = [0x5a; 256];
        let of = |bytes: &[u8]| {
            let mut striped = Striped::new();
            striped.update(bytes);
            striped.finish()
        };
        let good = of(&data);
        for bit in 0..data.len() * 8 {
            let mut flipped = data;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(of(&flipped), good, "bit {bit}");
        }
    }
}
