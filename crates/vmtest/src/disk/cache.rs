//! A volatile write cache over an image file.
//!
//! In: writes of whole sectors, flushes, a power cut. Out: what a reader sees, and what the image holds after
//! the cut. Invariant: the image holds what was flushed, and nothing of what was not until [`Cache::cut`]
//! lets an arbitrary subset through. Not modelled: garbled sectors, a sector that is torn inside.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::Serialize;

use crate::random::Random;

/// What a disk writes atomically. 512 bytes would be too hostile for XFS: its replay trusts the number in the
/// first sector of a block, and leaves a block alone of which only that sector was written.
pub const SECTOR: usize = 4096;

/// A disk with a volatile cache.
pub struct Cache {
    image: File,
    dirty: HashMap<u64, Box<[u8; SECTOR]>>,
    writes: u64,
    flushes: u64,
}

/// What a power cut did to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Sectors that were written and not flushed.
    pub unflushed_sectors: u64,
    /// Those of them that happened to reach the medium.
    pub survived: u64,
    /// Write requests since the disk was switched on.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
}

impl std::ops::Add for Cut {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            unflushed_sectors: self.unflushed_sectors + other.unflushed_sectors,
            survived: self.survived + other.survived,
            writes: self.writes + other.writes,
            flushes: self.flushes + other.flushes,
        }
    }
}

impl Cache {
    /// A disk over this image, with an empty cache.
    pub fn new(image: File) -> Self {
        Self { image, dirty: HashMap::new(), writes: 0, flushes: 0 }
    }

    /// Bytes of the disk.
    ///
    /// # Errors
    /// If the image cannot be asked.
    pub fn size(&self) -> io::Result<u64> {
        Ok(self.image.metadata()?.len())
    }

    /// Reads whole sectors, the cached ones over the image.
    ///
    /// # Errors
    /// Of the image.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.image.read_exact_at(into, offset)?;
        for (number, sector) in sectors(offset).zip(into.chunks_exact_mut(SECTOR)) {
            if let Some(cached) = self.dirty.get(&number) {
                sector.copy_from_slice(&cached[..]);
            }
        }
        Ok(())
    }

    /// Writes whole sectors into the cache.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.writes += 1;
        for (number, sector) in sectors(offset).zip(bytes.as_chunks::<SECTOR>().0) {
            self.dirty.insert(number, Box::new(*sector));
        }
    }

    /// True if a flush has something to do.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Brings the cache to the medium.
    ///
    /// # Errors
    /// Of the image.
    pub fn flush(&mut self) -> io::Result<()> {
        self.flushes += 1;
        for (number, sector) in self.dirty.drain() {
            self.image.write_all_at(&sector[..], number * SECTOR as u64)?;
        }
        Ok(())
    }

    /// The power fails: of what was not flushed, each sector survives with a chance of `keep` in 100.
    ///
    /// # Errors
    /// Of the image.
    pub fn cut(mut self, keep: u64, random: &mut Random) -> io::Result<Cut> {
        let mut cut = Cut {
            unflushed_sectors: self.dirty.len() as u64,
            writes: self.writes,
            flushes: self.flushes,
            survived: 0,
        };
        // In order, so that a seed decides.
        let mut dirty: Vec<_> = self.dirty.drain().collect();
        dirty.sort_unstable_by_key(|(number, _)| *number);
        for (number, sector) in dirty {
            if random.below(100) < keep {
                self.image.write_all_at(&sector[..], number * SECTOR as u64)?;
                cut.survived += 1;
            }
        }
        Ok(cut)
    }
}

fn sectors(offset: u64) -> impl Iterator<Item = u64> {
    offset / SECTOR as u64..
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> (Cache, File) {
        let image = tempfile::tempfile().expect("a file");
        image.set_len(64 * SECTOR as u64).expect("room");
        (Cache::new(image.try_clone().expect("a second descriptor")), image)
    }

    fn on_medium(image: &File, number: u64) -> u8 {
        let mut byte = [0];
        image.read_exact_at(&mut byte, number * SECTOR as u64).expect("a byte");
        byte[0]
    }

    #[test]
    fn what_was_flushed_survives_and_the_rest_does_not() {
        let (mut disk, image) = disk();
        disk.write(0, &[1; 2 * SECTOR]);
        disk.flush().expect("flushed");
        disk.write(SECTOR as u64, &[2; 2 * SECTOR]);
        let mut seen = [0; 3 * SECTOR];
        disk.read(0, &mut seen).expect("read");
        assert_eq!((seen[0], seen[SECTOR], seen[2 * SECTOR]), (1, 2, 2), "a reader sees the cache");
        let cut = disk.cut(0, &mut Random::new(1)).expect("cut");
        assert_eq!((cut.unflushed_sectors, cut.survived), (2, 0));
        assert_eq!([0, 1, 2].map(|n| on_medium(&image, n)), [1, 1, 0]);
    }

    #[test]
    fn a_share_of_what_was_not_flushed_survives() {
        let (mut disk, image) = disk();
        disk.write(0, &[7; 64 * SECTOR]);
        let cut = disk.cut(50, &mut Random::new(3)).expect("cut");
        assert!((10..54).contains(&cut.survived), "{cut:?}");
        let kept = (0..64).filter(|n| on_medium(&image, *n) == 7).count() as u64;
        assert_eq!(kept, cut.survived);
    }
}
