//! What an image and a journal are, for code that opens them.

use std::path::PathBuf;

use seawall_media::block::Recovered;

use crate::format::Layout;
use crate::journal::open as journal_open;

/// Sizes of a new pool on a block device.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes of the image: what a pool in memory would have.
    pub image: u64,
    /// Bytes of the journal.
    pub journal: u64,
}

impl Sizes {
    /// The usual sizes for an image of this size. One that is too large for a pool is refused as such.
    pub fn of(image: u64) -> Self {
        let journal = journal_open::smallest(image.min(Layout::MAX_SIZE)).next_multiple_of(1 << 20);
        Self { image, journal }
    }
}

/// The image of an open pool.
#[derive(Clone, Debug)]
pub struct Image {
    /// The path where it is.
    pub path: PathBuf,
    /// It was made from the journal; otherwise it was there already, from earlier in this boot.
    pub made: bool,
    /// What was found in the journal, if it was read.
    pub read: Option<Recovered>,
}
