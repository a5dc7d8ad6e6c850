//! Parts of an image: the parts of its tables that hold anything, and the part of a segment that a cursor covers.

#[cfg(feature = "std")]
use seawall_media::Region;

#[cfg(feature = "std")]
use crate::format::Layout;

/// The offset in a cursor; above it the use of the segment (`Segment::written`).
pub(super) const OFFSET: u64 = u32::MAX as u64;
/// Tables are searched in pieces of this size; pieces of zeros need not be written, or sent.
#[cfg(feature = "std")]
pub(super) const PIECE: usize = 512;

/// Where the tables hold anything, from `from` on.
#[cfg(feature = "std")]
pub(super) fn pieces(image: &Region, layout: Layout, from: usize) -> impl Iterator<Item = usize> {
    (from..layout.segments_at()).step_by(PIECE).filter(|at| {
        let mut bytes = [0; PIECE];
        image.read(*at, &mut bytes);
        bytes != [0; PIECE]
    })
}
