//! The bytes of an image in memory: zeros at first, batches applied to it, and stretches of it that are not zeros.

use seawall_media::block::BatchHeader;
use seawall_media::{LINE, in_large_pages};
use seawall_wire::keeper::Refusal;

/// Zeros that are looked through in one go.
pub(super) const SCAN: usize = 8 << 20;

/// The first stretch from `from` on that is not of zeros, as [`Copy::stretch`](super::Copy::stretch) has it.
pub(super) fn stretch(image: &[u8], from: u64, most: usize) -> Option<(u64, &[u8])> {
    let from = usize::try_from(from).ok()?;
    let zeros = image.get(from..)?.chunks(LINE).take(SCAN / LINE).take_while(|line| is_zero(line)).count();
    let begin = from + zeros * LINE;
    if zeros == SCAN / LINE {
        let last = begin - LINE;
        return Some((last as u64, &image[last..begin]));
    }
    let rest = image.get(begin..).filter(|rest| !rest.is_empty())?;
    let lines = rest.chunks(LINE).take(most / LINE).take_while(|line| !is_zero(line));
    Some((begin as u64, &rest[..lines.map(<[u8]>::len).sum()]))
}

/// Applies a batch to an image: all of it, or nothing.
pub(super) fn apply(image: &mut [u8], log: u64, number: u64, bytes: &[u8]) -> Result<(), Refusal> {
    let header = BatchHeader::of(bytes, log).filter(|header| header.number == number);
    let header = header.ok_or(Refusal::Malformed)?;
    let end = usize::try_from(header.len()).map_err(|_| Refusal::Malformed)?;
    let body = bytes.get(LINE..end).ok_or(Refusal::Malformed)?;
    for (offset, data) in header.extents(body, image.len() as u64).ok_or(Refusal::Malformed)? {
        let at = offset as usize;
        image[at..at + data.len()].copy_from_slice(data);
    }
    Ok(())
}

fn is_zero(line: &[u8]) -> bool {
    *line == [0; LINE][..line.len()]
}

/// An image of so many bytes.
pub(super) fn zeros(bytes: u64) -> Vec<u8> {
    // The kernel gives these pages when they are first written.
    let mut zeros = vec![0; usize::try_from(bytes).unwrap_or(0)];
    in_large_pages(&mut zeros);
    zeros
}
