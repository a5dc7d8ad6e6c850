//! The pool's bytes, and what makes a change of its tables durable.
//!
//! On persistent memory the fences inside the change itself do that. On a block device the image in memory makes
//! nothing durable: the change is made with the journal's lock held, and its lines are on the device before it counts.
//! So neither a leader nor a recovery ever sees a table there half changed.

use core::ops::Deref;
use core::sync::atomic::Ordering::Acquire;

use rustix::io::Errno;
use seawall_media::Region;

use crate::format::Layout;
use crate::journal::Journal;

/// A pool in memory.
pub struct Store {
    region: Region,
    journal: Option<Journal>,
}

/// A stretch of the image: offset and length.
pub type Range = (usize, usize);

impl Store {
    /// An image in front of this journal.
    pub fn journaled(region: Region, journal: Journal) -> Self {
        Self { region, journal: Some(journal) }
    }

    /// The journal that makes it durable, if its own memory does not.
    #[inline]
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// Segments that have their memory, in an image of this layout: the first ones.
    #[inline]
    pub fn backed(&self, layout: Layout) -> u32 {
        let unbacked = self.journal.as_ref().map_or(0, |j| j.desk(&self.region).unbacked().load(Acquire));
        layout.segments.saturating_sub(unbacked)
    }

    /// Changes tables, only inside `ranges`. Persisted when this returns success, in one piece if the ranges fit into
    /// one batch.
    ///
    /// # Errors
    /// The error of the journal's device: then nothing may rely on the change, and nothing is hardened any more.
    pub fn change<R>(&self, ranges: &[Range], change: impl FnOnce(&Region) -> R) -> Result<R, Errno> {
        match &self.journal {
            None => Ok(change(&self.region)),
            Some(journal) => journal.change(&self.region, ranges, || change(&self.region)),
        }
    }
}

impl From<Region> for Store {
    fn from(region: Region) -> Self {
        Self { region, journal: None }
    }
}

impl Deref for Store {
    type Target = Region;
    #[inline]
    fn deref(&self) -> &Region {
        &self.region
    }
}
