//! One file below the page cache: what is surely on disk, and what may have got there.
//!
//! Every published change makes new versions of the sectors it touches and perhaps of the size. A sync makes
//! the newest of each durable. At a crash each sector and the size hold, independently, the durable version or
//! any later one: any write-back order, torn inside pages, and with small sectors inside a disk's sector too.
//! That is more than ext4 and XFS allow (they order sizes after data); what passes here passes there. Or the
//! disk wrote in order: then all hold the state of one moment.
//!
//! A disk may also *garble*: a sector that was being written reads as none of its versions. Whether it may do so
//! in a run is decided by [`World::may_garble`](crate::world::World::may_garble): no log can bring back the bytes
//! of a sector that it does not hold. Not simulated: a sector that nobody wrote since it was synced and that is
//! garbled all the same, and a garbled structure of the file system (FAILURE_MODEL, assumption 2).

use std::collections::{BTreeMap, BTreeSet};

use crate::{Rng, Survival};

/// The usual unit in which a disk writes.
const SECTOR: usize = 512;

/// A later version: when it was made, and what it is.
type Version = (u64, Box<[u8]>);

/// A simulated file.
#[derive(Clone)]
pub struct Disk {
    /// What everybody sees.
    cache: Vec<u8>,
    durable: Vec<u8>,
    /// The unit the disk writes whole.
    sector: usize,
    /// Counts changes.
    clock: u64,
    /// Later versions of sectors, oldest first.
    sectors: BTreeMap<u32, Vec<Version>>,
    /// Sectors that are under way to the disk. Those of holes are not: no block is behind them.
    written: BTreeSet<u32>,
    /// Later sizes, with their times.
    sizes: Vec<(u64, usize)>,
    /// Versions that a failed sync lost: they may be on disk, and no later sync puts them there.
    lost: BTreeMap<u32, Vec<Version>>,
}

impl Disk {
    /// A file with this content on disk.
    pub fn holding(content: Vec<u8>) -> Self {
        let none = BTreeMap::new();
        Self {
            cache: content.clone(),
            durable: content,
            sector: SECTOR,
            clock: 0,
            sectors: none.clone(),
            written: BTreeSet::new(),
            sizes: Vec::new(),
            lost: none,
        }
    }

    /// The file on a disk that writes in other units. Nothing may be unsure yet.
    pub fn on(mut self, sector: usize) -> Self {
        self.sector = sector;
        self
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
        self.clock += 1;
        let end = offset + data.len();
        let before = self.cache.len();
        if end > before {
            self.cache.resize(end, 0);
            self.sizes.push((self.clock, end));
        }
        self.cache[offset..end].copy_from_slice(data);
        self.version(offset.min(before), end);
        self.written.extend(self.indices(offset, end));
    }

    /// A truncate or an extension by size.
    pub fn set_len(&mut self, len: usize) {
        self.clock += 1;
        let before = self.cache.len();
        self.cache.resize(len, 0);
        self.sizes.push((self.clock, len));
        if len < before {
            self.version(len, before);
            self.written.extend(self.indices(len, before));
        }
    }

    fn indices(&self, from: usize, to: usize) -> std::ops::Range<u32> {
        (from / self.sector) as u32..to.div_ceil(self.sector) as u32
    }

    /// New versions of the sectors of a range of bytes.
    fn version(&mut self, from: usize, to: usize) {
        for index in self.indices(from, to) {
            let now = self.sector_of(&self.cache, index);
            self.sectors.entry(index).or_default().push((self.clock, now));
        }
    }

    fn sector_of(&self, bytes: &[u8], index: u32) -> Box<[u8]> {
        let mut sector = vec![0; self.sector];
        let from = (index as usize * self.sector).min(bytes.len());
        let to = (from + self.sector).min(bytes.len());
        sector[..to - from].copy_from_slice(&bytes[from..to]);
        sector.into()
    }

    /// The content became this by other hands.
    pub fn becomes(&mut self, content: &[u8]) {
        if content.len() != self.cache.len() {
            self.set_len(content.len());
        }
        for from in (0..content.len()).step_by(self.sector) {
            let to = content.len().min(from + self.sector);
            if content[from..to] != self.cache[from..to] {
                self.write(from, &content[from..to]);
            }
        }
    }

    /// A real sync succeeded.
    pub fn sync(&mut self) {
        let len = self.cache.len();
        for (index, versions) in std::mem::take(&mut self.sectors) {
            if let Some((_, newest)) = versions.last() {
                put(&mut self.durable, index, newest);
                self.lost.remove(&index);
            }
        }
        self.written.clear();
        self.sizes.clear();
        self.durable.resize(len, 0);
    }

    /// A real sync failed: the pages are clean now, though nobody knows what of them is on disk.
    pub fn fail(&mut self) {
        for (index, versions) in std::mem::take(&mut self.sectors) {
            self.lost.entry(index).or_default().extend(versions);
        }
        self.written.clear();
    }

    /// The kernel drops some of the pages that it marked clean: readers see what is on disk. True if any differ.
    pub fn drop_lost(&mut self, rng: &Rng) -> bool {
        let before = self.cache.clone();
        for index in self.lost.keys().filter(|_| rng.one_in(2)) {
            let from = (*index as usize * self.sector).min(self.cache.len());
            let to = (from + self.sector).min(self.cache.len());
            let stale = self.sector_of(&self.durable, *index);
            self.cache[from..to].copy_from_slice(&stale[..to - from]);
        }
        self.cache != before
    }

    /// The content a power cut leaves on a disk that garbles some of what it was writing.
    pub fn garbled(&self, survival: Survival, rng: &Rng) -> Vec<u8> {
        let mut content = self.crash(survival, rng);
        let size = content.len();
        let share = rng.pick(&[2, 8]);
        for index in self.written.iter().filter(|_| rng.one_in(share)) {
            let noise: Vec<u8> = (0..self.sector).map(|_| rng.next() as u8).collect();
            if *index as usize * self.sector < size {
                put(&mut content, *index, &noise);
            }
        }
        content.truncate(size);
        content
    }

    /// The content a power cut leaves.
    pub fn crash(&self, survival: Survival, rng: &Rng) -> Vec<u8> {
        let moment = match survival {
            Survival::None => Some(0),
            Survival::All | Survival::AllButOne => Some(self.clock),
            Survival::Lines(_) => Some(rng.below(self.clock + 1)),
            Survival::Some(_) => None,
        };
        // How many of the versions had come to pass.
        let reached = |times: &mut dyn ExactSizeIterator<Item = u64>| match moment {
            Some(moment) => times.take_while(|time| *time <= moment).count(),
            None => rng.below(times.len() as u64 + 1) as usize,
        };
        let mut content = self.durable.clone();
        let size = match reached(&mut self.sizes.iter().map(|(time, _)| *time)) {
            0 => self.durable.len(),
            n => self.sizes[n - 1].1,
        };
        for (index, versions) in self.lost.iter().chain(&self.sectors) {
            let n = reached(&mut versions.iter().map(|(time, _)| *time));
            if n > 0 {
                put(&mut content, *index, &versions[n - 1].1);
            }
        }
        content.resize(size, 0);
        content
    }
}

fn put(bytes: &mut Vec<u8>, index: u32, sector: &[u8]) {
    let from = index as usize * sector.len();
    if bytes.len() < from + sector.len() {
        bytes.resize(from + sector.len(), 0);
    }
    bytes[from..from + sector.len()].copy_from_slice(sector);
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
        let in_order = disk.crash(Survival::Lines(0), &rng);
        assert!(in_order.len() == 700 || in_order == vec![3; 1400], "one moment for size and content");
        disk.fail();
        disk.sync();
        assert_eq!(&disk.durable()[..500], [1; 500], "a failed sync is not made good by a later one");
    }

    // Holds: L17
    #[test]
    fn what_is_being_written_may_be_garbled_and_nothing_else() {
        let mut disk = Disk::holding(vec![1; 1024]);
        disk.write(0, &[2; 512]);
        disk.write(2048, &[3; 512]);
        let rng = Rng::new(7);
        let left: Vec<_> = (0..50).map(|_| disk.garbled(Survival::All, &rng)).collect();
        assert!(
            left.iter().any(|c| ![1, 2].contains(&c[5])) && left.iter().any(|c| ![0, 3].contains(&c[2050]))
        );
        assert!(left.iter().all(|c| c[512..1024] == [1; 512] && c[1024..2048] == [0; 1024]));
        disk.sync();
        assert_eq!(disk.garbled(Survival::All, &rng), disk.cache());
    }
}
