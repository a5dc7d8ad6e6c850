//! Writes of the daemon's own: it finishes what a process left half published, and that too must be announced.

use seawall_cache::shared::{Cell, Changing, OperationOwner, Version};

use super::zone::Zone;

/// A file is being written by this daemon, until it is dropped.
pub(crate) struct Announced<'a> {
    zone: &'a Zone,
    how: Option<How<'a>>,
}

enum How<'a> {
    Changing(Changing<'a>),
    Unannounced(Cell),
}

impl<'a> Announced<'a> {
    /// Announces that the file with this device and inode is about to be written somewhere.
    pub fn new(zone: &'a Zone, me: OperationOwner, dev: u64, ino: u64) -> Self {
        let (cache, cell) = (&zone.cache, zone.cache.cell(dev, ino));
        let mut known = Version::default();
        let how = loop {
            if let Some(file) = cache.find(dev, ino) {
                break How::Changing(cache.begin_change(me, file));
            }
            match cache.begin_unannounced(cell, known) {
                Ok(()) => break How::Unannounced(cell),
                Err(version) if version == known => {
                    // Versions are used up: as it is, the cell is never quiet again.
                    cache.pin(cell);
                    break How::Unannounced(cell);
                }
                Err(version) => known = version,
            }
        };
        Self { zone, how: Some(how) }
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        match self.how.take() {
            Some(How::Changing(changing)) => self.zone.cache.end_change(changing),
            Some(How::Unannounced(cell)) => self.zone.cache.end_unannounced(cell),
            None => {}
        }
    }
}
