//! The headers of a whole ring, which are looked at in parallel: a device that is asked for one piece at a time is idle in
//! between, and so are the other processors.

use std::cmp::Reverse;
use std::io;
use std::ops::Range;

use super::anchor::RING_AT;
use super::batch::BatchHeader;
use super::chain::Journal;
use crate::parallel::in_parallel;

/// Bytes that are read at once.
const PIECE: u64 = 1 << 20;
/// Pieces that are being read at the same time: enough for a device with a deep queue.
const READERS: usize = 8;

/// What a header says of the chain. As small as it can be: a large ring has millions of them.
pub(super) struct Claim {
    pub previous: u64,
    pub number: u64,
    pub position: u64,
}

impl<R: Fn(&mut [u8], u64) -> io::Result<()> + Sync> Journal<R> {
    /// What all valid headers of the ring say, those that name the same predecessor next to each other, the highest number
    /// first. `data`: where anything was ever written.
    pub fn claims(&self, data: impl Iterator<Item = Range<u64>>) -> io::Result<Vec<Claim>> {
        let pieces: Vec<_> = self.pieces(data).collect();
        let buffer = || vec![0; PIECE as usize];
        let read = |buffer: &mut Vec<u8>, i: usize| self.claims_of(&pieces[i], buffer);
        let found: io::Result<Vec<_>> =
            in_parallel((READERS, pieces.len()), buffer, read).into_iter().collect();
        let mut claims: Vec<Claim> = found?.into_iter().flatten().collect();
        claims.sort_unstable_by_key(|claim| (claim.previous, Reverse(claim.number)));
        Ok(claims)
    }

    /// The ring where anything was written, in whole blocks.
    fn pieces(&self, data: impl Iterator<Item = Range<u64>>) -> impl Iterator<Item = Range<u64>> {
        let (size, block) = (self.anchor.size, u64::from(self.anchor.block));
        let whole = move |stretch: Range<u64>| {
            let from = (stretch.start / block * block).max(RING_AT);
            from..stretch.end.next_multiple_of(block).min(size)
        };
        let cut = |stretch: Range<u64>| {
            let end = stretch.end;
            stretch.step_by(PIECE as usize).map(move |from| from..(from + PIECE).min(end))
        };
        data.map(whole).flat_map(cut)
    }

    fn claims_of(&self, piece: &Range<u64>, buffer: &mut [u8]) -> io::Result<Vec<Claim>> {
        let block = self.anchor.block as usize;
        let bytes = &mut buffer[..(piece.end - piece.start) as usize];
        (self.read_at)(bytes, piece.start)?;
        let lines = bytes.chunks_exact(block).zip(piece.clone().step_by(block));
        let headers = lines.filter_map(|(line, place)| self.header(line, place));
        let claim = |h: BatchHeader| Claim { previous: h.previous, number: h.number, position: h.position };
        Ok(headers.map(claim).collect())
    }
}
