//! One file below the page cache: what is surely on disk, and what may have got there.
//!
//! Every published change makes new versions of the 512-byte sectors it touches and perhaps of the size. A
//! sync makes the newest of each durable. At a crash each sector and the size hold, independently, the
//! durable version or any later one: any write-back order, torn inside pages. That is more than ext4 and
//! XFS allow (they order sizes after data); what passes here passes there.

use std::collections::BTreeMap;

use crate::{Rng, Survival};

/// The unit the disk writes whole.
pub const SECTOR: usize = 512;
type Sector = [u8; SECTOR];

/// A simulated file.
#[derive(Clone, Default)]
pub struct Disk {
    /// What everybody sees.
    cache: Vec<u8>,
    durable: Vec<u8>,
    /// Later versions of sectors, oldest first.
    sectors: BTreeMap<u32, Vec<Sector>>,
    /// Later sizes.
    sizes: Vec<usize>,
    /// Versions that a failed sync lost: they may be on disk, and no later sync puts them there.
    lost: BTreeMap<u32, Vec<Sector>>,
}

fn sector_of(bytes: &[u8], index: u32) -> Sector {
    let mut sector = [0; SECTOR];
    let from = (index as usize * SECTOR).min(bytes.len());
    let to = (from + SECTOR).min(bytes.len());
    sector[..to - from].copy_from_slice(&bytes[from..to]);
    sector
}

fn put(bytes: &mut Vec<u8>, index: u32, sector: &Sector) {
    let from = index as usize * SECTOR;
    if bytes.len() < from + SECTOR {
        bytes.resize(from + SECTOR, 0);
    }
    bytes[from..from + SECTOR].copy_from_slice(sector);
}

impl Disk {
    /// A file with this content on disk.
    pub fn holding(content: Vec<u8>) -> Self {
        Self { cache: content.clone(), durable: content, ..Self::default() }
    }

    /// What a reader sees.
    pub fn cache(&self) -> &[u8] {
        &self.cache
    }

    /// What is surely there after a crash.
    pub fn durable(&self) -> &[u8] {
        &self.durable
    }

    /// A write.
    pub fn write(&mut self, offset: usize, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let end = offset + data.len();
        if end > self.cache.len() {
            self.cache.resize(end, 0);
            self.sizes.push(end);
        }
        self.cache[offset..end].copy_from_slice(data);
        self.version((offset / SECTOR) as u32..end.div_ceil(SECTOR) as u32);
    }

    /// A truncate or an extension by size.
    pub fn set_len(&mut self, len: usize) {
        let before = self.cache.len();
        self.cache.resize(len, 0);
        self.sizes.push(len);
        if len < before {
            self.version((len / SECTOR) as u32..before.div_ceil(SECTOR) as u32);
        }
    }

    fn version(&mut self, sectors: std::ops::Range<u32>) {
        for index in sectors {
            let now = sector_of(&self.cache, index);
            self.sectors.entry(index).or_default().push(now);
        }
    }

    /// The content became this by other hands.
    pub fn becomes(&mut self, content: &[u8]) {
        if content.len() != self.cache.len() {
            self.set_len(content.len());
        }
        for index in 0..content.len().div_ceil(SECTOR) as u32 {
            let now = sector_of(content, index);
            if now != sector_of(&self.cache, index) {
                let from = index as usize * SECTOR;
                let to = content.len().min(from + SECTOR);
                self.write(from, &content[from..to]);
            }
        }
    }

    /// A real sync succeeded.
    pub fn sync(&mut self) {
        let len = self.cache.len();
        for (index, versions) in std::mem::take(&mut self.sectors) {
            if let Some(newest) = versions.last() {
                put(&mut self.durable, index, newest);
                self.lost.remove(&index);
            }
        }
        self.sizes.clear();
        self.durable.resize(len, 0);
    }

    /// A real sync failed: the pages are clean now, though nobody knows what of them is on disk.
    pub fn fail(&mut self) {
        for (index, versions) in std::mem::take(&mut self.sectors) {
            self.lost.entry(index).or_default().extend(versions);
        }
    }

    /// The content a power cut leaves.
    pub fn crash(&self, survival: Survival, rng: &Rng) -> Vec<u8> {
        let mut content = self.durable.clone();
        let sizes = &self.sizes;
        let size = match survival {
            Survival::None => self.durable.len(),
            Survival::All => self.cache.len(),
            _ => match rng.below(sizes.len() as u64 + 1) {
                0 => self.durable.len(),
                i => sizes[i as usize - 1],
            },
        };
        for (index, versions) in self.lost.iter().chain(&self.sectors) {
            let chosen = match survival {
                Survival::None => 0,
                Survival::All => versions.len() as u64,
                _ => rng.below(versions.len() as u64 + 1),
            };
            if chosen > 0 {
                put(&mut content, *index, &versions[chosen as usize - 1]);
            }
        }
        content.resize(size, 0);
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synced_is_sure_and_the_rest_is_not() {
        let mut disk = Disk::holding(vec![1; 600]);
        disk.write(500, &[2; 200]);
        disk.sync();
        disk.write(0, &[3; 1400]);
        let rng = Rng::new(7);
        assert_eq!(disk.crash(Survival::None, &rng), [vec![1; 500], vec![2; 200]].concat());
        assert_eq!(disk.crash(Survival::All, &rng), vec![3; 1400]);
        let sizes: std::collections::BTreeSet<_> =
            (0..50).map(|_| disk.crash(Survival::Some(128), &rng).len()).collect();
        assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [700, 1400]);
        disk.fail();
        disk.sync();
        assert_eq!(&disk.durable()[..500], [1; 500], "a failed sync is not made good by a later one");
    }
}
