//! A write that a power cut meets on its way to a disk.

use crate::Rng;

/// What a disk writes whole.
pub const SECTOR: usize = 512;

/// What is left of a write that was under way: any mixture of old, new and garbled sectors.
pub fn tear(bytes: &mut [u8], new: &[u8], rng: &Rng) {
    let (share, garbled) = (rng.pick(&[0, 16, 128, 240, 256]), rng.one_in(4));
    for (old, new) in bytes.chunks_mut(SECTOR).zip(new.chunks(SECTOR)) {
        if rng.below(256) < share {
            old.copy_from_slice(new);
        } else if garbled && rng.one_in(4) {
            old.fill(rng.next() as u8);
        }
    }
}
