//! The run-time memory: one mapping, a few arrays of small typed views.
//!
//! ```text
//! header | lanes | files | hash of files | holds | captured files | made directories | clients | roots | segments | statistics
//! ```
//!
//! What lies in a file's slot, in the hash of files and of captured files and made directories is not this crate's: their owner is
//! `seawall_core::file`, which finds them by [`Shm::file_words`], [`Shm::bucket`] and [`Shm::captured_words`].

mod client;
mod header;
mod lane;
mod root;
mod segment;
mod shape;
mod stray;
mod stretch;

use seawall_media::Region;
use seawall_stats::{BLOCK_BYTES, Block};

pub use client::{Client, Hold};
pub use header::Header;
pub use lane::Lane;
pub use root::{Policy, Preset, ROOT_PATH_MAX, Root};
pub use segment::{Segment, SegmentState};
pub use shape::Shape;
pub use stray::Stray;
pub use stretch::Words;

/// The run-time memory of one pool.
pub struct Shm {
    region: Region,
    shape: Shape,
}

impl Shm {
    /// Takes a mapping whose header was already written or checked by [`Header::matches`].
    ///
    /// # Errors
    /// The mapping's length if it is shorter than the shape in its header asks for, or the shape is absurd.
    pub fn open(region: Region) -> Result<Self, usize> {
        if region.len() < Header::BYTES {
            return Err(region.len());
        }
        let shape = Header::new(&region).shape();
        match shape.total_bytes() {
            Some(total) if total <= region.len() => Ok(Self { region, shape }),
            _ => Err(region.len()),
        }
    }

    /// The counts that fix the layout.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The header.
    #[inline]
    pub fn header(&self) -> Header<'_> {
        Header::new(&self.region)
    }

    /// Lane `i`, or `None` if there is no such lane.
    #[inline]
    pub fn lane(&self, i: u32) -> Option<Lane<'_>> {
        (i < self.shape.lanes)
            .then(|| Lane::new(&self.region, self.shape.lanes_at() + i as usize * Lane::BYTES))
    }

    /// The words of file slot `i`, or `None` if there is no such slot. For their owner, `seawall_core::file`, alone.
    #[inline]
    pub fn file_words(&self, i: u32) -> Option<Words<'_>> {
        (i < self.shape.files)
            .then(|| Words::new(&self.region, self.shape.files_at() + i as usize * Shape::FILE_BYTES))
    }

    /// The words of captured file `i` of [`CAPTURED`](Shape::CAPTURED). For their owner, `seawall_core::file`, alone.
    #[inline]
    pub fn captured_words(&self, i: u32) -> Words<'_> {
        let i = (i % Shape::CAPTURED) as usize;
        Words::new(&self.region, self.shape.captured_at() + i * Shape::CAPTURED_BYTES)
    }

    /// The words of made directory `i` of [`MADE`](Shape::MADE). For their owner, `seawall_core::file`, alone.
    #[inline]
    pub fn made_words(&self, i: u32) -> Words<'_> {
        let i = (i % Shape::MADE) as usize;
        Words::new(&self.region, self.shape.made_at() + i * Shape::MADE_BYTES)
    }

    /// Client slot `i`, or `None` if there is no such slot.
    #[inline]
    pub fn client(&self, i: u32) -> Option<Client<'_>> {
        (i < self.shape.clients)
            .then(|| Client::new(&self.region, self.shape.clients_at() + i as usize * Client::BYTES))
    }

    /// Segment `i`, or `None` if there is no such segment.
    #[inline]
    pub fn segment(&self, i: u32) -> Option<Segment<'_>> {
        (i < self.shape.segments)
            .then(|| Segment::new(&self.region, self.shape.segments_at() + i as usize * Segment::BYTES))
    }

    /// Root `i`, or `None` if there is no such root.
    #[inline]
    pub fn root(&self, i: u32) -> Option<Root<'_>> {
        (i < self.shape.roots)
            .then(|| Root::new(&self.region, self.shape.roots_at() + i as usize * Root::BYTES))
    }

    /// Every hold entry.
    pub fn holds(&self) -> impl Iterator<Item = Hold<'_>> {
        let at = self.shape.holds_at();
        (0..self.shape.holds as usize).map(move |i| Hold::new(&self.region, at + i * Hold::BYTES))
    }

    /// Every lane.
    pub fn lanes(&self) -> impl Iterator<Item = Lane<'_>> {
        (0..self.shape.lanes).filter_map(|i| self.lane(i))
    }

    /// Histograms of lane `i`, by event and class of file; the block after the last lane's is the daemon's.
    pub fn stats(&self, i: u32) -> Block<'_> {
        let i = i.min(self.shape.lanes);
        Block::new(&self.region, self.shape.stats_at() + i as usize * BLOCK_BYTES)
    }

    /// Bucket `i` of the hash of files, of [`buckets`](Shape::buckets). For its owner, `seawall_core::file`, alone.
    #[inline]
    pub fn bucket(&self, i: usize) -> &core::sync::atomic::AtomicU32 {
        self.region.u32(self.shape.hash_at() + i * 4)
    }
}
