//! The rest of an image's memory, taken while the log is in use. For its invariants, see `backing`.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Release};

use rustix::fs::{FallocateFlags, fallocate};
use seawall_media::Medium;

use super::opened::Pool;
use crate::Engine;
use crate::destage::announce;

impl Pool {
    /// Takes memory for the next segments, about this many bytes of them, which then become room in the log. Returns
    /// how many; 0: all segments have it. Nobody else does this at the same time.
    ///
    /// # Errors
    /// There is no memory for now.
    pub fn back(&self, engine: &Engine, bytes: usize) -> io::Result<u32> {
        let (layout, backed) = (self.layout(), self.backed());
        let Some(journal) = self.region.journal().filter(|_| self.medium == Medium::Block) else {
            return Ok(0);
        };
        let most = (bytes / layout.segment_bytes as usize).max(1) as u32;
        let end = layout.segments.min(backed + most);
        if end == backed {
            return Ok(0);
        }
        let (from, to) = (layout.segment(backed), layout.segment(end));
        fallocate(&self.file, FallocateFlags::empty(), from as u64, (to - from) as u64)?;
        self.region.collapse(from, to - from);
        let unbacked = journal.desk(&self.region).unbacked();
        assert!(unbacked.load(Acquire) == layout.segments - backed, "two take memory for one image");
        unbacked.store(layout.segments - end, Release);
        announce(engine, end - backed);
        Ok(end - backed)
    }
}
