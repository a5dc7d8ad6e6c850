//! Self-describing blocks: each one says which block it is, who wrote it, and how often.
//!
//! ```text
//!   0        8        16       24     28     32                          bs-4
//!   | magic  | number | seq    | writer | bs | body: mix(number, seq, i) | crc32 |
//! ```
//! Each field defeats one fault:
//! - `number`: a write that landed somewhere else;
//! - `seq`:    a lost write (an older content reads back) ;
//! - `writer`: two writers mixed up (appending to one file);
//! - `bs`, `magic`: reading with the wrong block size, or something that was never a block;
//! - `crc32` over everything before it: torn or garbled content.

use std::fmt;

const MAGIC: u64 = 0x4c4c_4157_4145_5321; // "!SEAWALL"
const HEADER_LEN: usize = 32;
const CRC_LEN: usize = 4;

/// Smallest block that can describe itself.
pub const BLOCK_SIZE_MIN: usize = 64;

/// What a block claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Position in the file (overwrites) or in its writer's stream (appends).
    pub number: u64,
    /// How many writes its writer had done, this one included; 0 is the preparation of the file.
    pub seq: u64,
    /// Which worker wrote it.
    pub writer: u32,
}

/// Why a block is not what it claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The magic is not there: zeros, foreign data, or a shifted read.
    NotABlock,
    /// Written with another block size.
    Size(u32),
    /// Torn or garbled: the checksum disagrees.
    Checksum,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::NotABlock => write!(f, "no block here (zeros or foreign data)"),
            Damage::Size(bs) => write!(f, "written with block size {bs}"),
            Damage::Checksum => write!(f, "checksum mismatch (torn or garbled)"),
        }
    }
}

/// Fills `block` so that it describes itself.
pub fn stamp(block: &mut [u8], tag: Tag) {
    assert!(block.len() >= BLOCK_SIZE_MIN && block.len().is_multiple_of(8));
    let body_end = block.len() - CRC_LEN;
    put_u64(block, 0, MAGIC);
    put_u64(block, 8, tag.number);
    put_u64(block, 16, tag.seq);
    block[24..28].copy_from_slice(&tag.writer.to_le_bytes());
    let bs = block.len() as u32;
    block[28..32].copy_from_slice(&bs.to_le_bytes());
    let seed = tag.number.rotate_left(32) ^ tag.seq ^ u64::from(tag.writer) << 56;
    for (i, word) in block[HEADER_LEN..body_end].chunks_mut(8).enumerate() {
        let bytes = mix(seed.wrapping_add(i as u64)).to_le_bytes();
        word.copy_from_slice(&bytes[..word.len()]);
    }
    let crc = crc32fast::hash(&block[..body_end]);
    block[body_end..].copy_from_slice(&crc.to_le_bytes());
}

/// Reads a block's tag, or says why it cannot be believed.
pub fn read(block: &[u8]) -> Result<Tag, Damage> {
    assert!(block.len() >= BLOCK_SIZE_MIN);
    if get_u64(block, 0) != MAGIC {
        return Err(Damage::NotABlock);
    }
    let size = get_u32(block, 28);
    if size as usize != block.len() {
        return Err(Damage::Size(size));
    }
    let body_end = block.len() - CRC_LEN;
    if get_u32(block, body_end) != crc32fast::hash(&block[..body_end]) {
        return Err(Damage::Checksum);
    }
    Ok(Tag { number: get_u64(block, 8), seq: get_u64(block, 16), writer: get_u32(block, 24) })
}

/// A cheap, well-mixed function of one word (SplitMix64's finaliser).
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn put_u64(block: &mut [u8], at: usize, value: u64) {
    block[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn get_u64(block: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&block[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn get_u32(block: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&block[at..at + 4]);
    u32::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: Tag = Tag { number: 7, seq: 42, writer: 3 };

    #[test]
    fn a_block_says_what_it_is() {
        for bs in [64, 4096, 8192] {
            let mut block = vec![0; bs];
            stamp(&mut block, TAG);
            assert_eq!(read(&block), Ok(TAG));
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let mut block = vec![0; 256];
        stamp(&mut block, TAG);
        for bit in 0..block.len() * 8 {
            block[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&block).is_err(), "bit {bit}");
            block[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn zeros_are_not_a_block() {
        assert_eq!(read(&[0; 4096]), Err(Damage::NotABlock));
    }
}
