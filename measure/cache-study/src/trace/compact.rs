//! A trace as bytes: a few for each access.
//!
//! After the magic come numbers in LEB128 (7 bits a byte, low ones first, the top bit says that more follow): how
//! many files, how many accesses, then for each access one number,
//! `(distance from the file's last block, zigzag) · 2 · files + file · 2 + (1 if written)`.

use seawall_cache::access::Access;
use seawall_cache::key::Block;

const MAGIC: &[u8; 8] = b"SWTRACE\x01";

/// Bytes that are not a trace, and where that showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a trace, or a damaged one, at byte {at}")]
pub struct DamagedTrace {
    /// Offset of the first byte that makes no sense.
    pub at: usize,
}

/// The bytes of a trace. Its files must be numbered from 0 on without gaps.
pub fn encode(accesses: &[Access]) -> Vec<u8> {
    let parts = |access: &Access| match *access {
        Access::Read(block) => (block, 0),
        Access::Write(block) => (block, 1),
    };
    let files = accesses.iter().map(|access| parts(access).0.file + 1).max().unwrap_or(0) as usize;
    let mut out = MAGIC.to_vec();
    push(&mut out, files as u64);
    push(&mut out, accesses.len() as u64);
    let mut last = vec![0; files];
    for (block, written) in accesses.iter().map(parts) {
        let file = block.file as usize;
        let distance = i64::from(block.number) - last[file];
        last[file] = i64::from(block.number);
        let zigzag = (distance << 1 ^ distance >> 63) as u64;
        push(&mut out, (zigzag * files as u64 + file as u64) * 2 + written);
    }
    out
}

/// The trace that these bytes are.
///
/// # Errors
/// [`DamagedTrace`].
pub fn decode(bytes: &[u8]) -> Result<Vec<Access>, DamagedTrace> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(DamagedTrace { at: 0 })?;
    let mut numbers = Numbers { rest, total: bytes.len() };
    let (files, count) = (numbers.next()?, numbers.next()?);
    if files > rest.len() as u64 || count > rest.len() as u64 {
        return Err(numbers.damaged());
    }
    let mut last = vec![0i64; files as usize];
    let mut accesses = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let number = numbers.next()?;
        let (is_write, rest) = (number & 1 == 1, number >> 1);
        let zigzag = rest.checked_div(files).ok_or(numbers.damaged())?;
        let file = (rest % files) as u32;
        let block = last[file as usize] + ((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64));
        last[file as usize] = block;
        let number = u32::try_from(block).map_err(|_| numbers.damaged())?;
        let block = Block { file, number };
        accesses.push(if is_write { Access::Write(block) } else { Access::Read(block) });
    }
    if numbers.rest.is_empty() { Ok(accesses) } else { Err(numbers.damaged()) }
}

fn push(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

struct Numbers<'a> {
    rest: &'a [u8],
    total: usize,
}

impl Numbers<'_> {
    fn damaged(&self) -> DamagedTrace {
        DamagedTrace { at: self.total - self.rest.len() }
    }

    fn next(&mut self) -> Result<u64, DamagedTrace> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(self.damaged())?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.damaged())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let block = |file, number| Block { file, number };
        let accesses = [
            Access::Read(block(0, u32::MAX)),
            Access::Write(block(1, 0)),
            Access::Read(block(0, 0)),
            Access::Read(block(0, 1)),
        ];
        assert_eq!(decode(&encode(&accesses)), Ok(accesses.to_vec()));
        assert_eq!(decode(&encode(&[])), Ok(Vec::new()));
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let block = |number| Block { file: 0, number };
        let good = encode(&[1, 900, 3, 70_000].map(|n| Access::Read(block(n))));
        for len in 0..good.len() {
            assert!(decode(&good[..len]).is_err());
        }
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                let _ = decode(&bad);
            }
        }
        assert_eq!(decode(b"nothing"), Err(DamagedTrace { at: 0 }));
    }
}
