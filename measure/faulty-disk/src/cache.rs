//! A disk with a volatile write cache: what is visible, what is durable, and what a power cut leaves.
//!
//! Writes become visible at once and stay pending. A flush makes everything durable that was written before
//! it. A cut applies any subset of the pending writes, chosen sector by sector or coarser, and forgets the
//! rest. An overwritten sector may come out in any of the versions it had since the last flush, because each
//! pending write is drawn for by itself and the drawn ones are applied in order.
//!
//! Invariant: `visible` is `durable` plus all of `pending` in order.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::image::Image;
use fastrand::Rng;

/// The unit that a disk writes whole or not at all.
pub const SECTOR: usize = 512;
/// What a file system and a database like to believe is such a unit.
pub const PAGE: usize = 4096;
/// A real cache is not endless: beyond this the oldest writes trickle out by themselves.
const CACHE_BYTES: usize = 256 << 20;

/// Which of the pending writes a power cut leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// None at all.
    Everything,
    /// Whole requests, this many percent of them.
    Requests(u8),
    /// 4 KiB pages, this many percent of them.
    Pages(u8),
    /// 512-byte sectors, this many percent of them: pages are torn.
    Sectors(u8),
}

impl Loss {
    /// One that a round of rounds should have seen.
    pub fn draw(rng: &mut Rng) -> Self {
        let kept = [10, 50, 90, 98][rng.usize(..4)];
        match rng.u64(..5) {
            0 => Loss::Everything,
            1 => Loss::Requests(kept),
            2 => Loss::Pages(kept),
            _ => Loss::Sectors(kept),
        }
    }

    /// What is lost, in a table's words.
    pub fn name(self) -> &'static str {
        match self {
            Loss::Everything => "all un-flushed",
            Loss::Requests(_) => "random requests",
            Loss::Pages(_) => "random pages",
            Loss::Sectors(_) => "torn sectors",
        }
    }

    /// Bytes that are lost or kept together, and how many percent are kept.
    fn grain(self) -> (usize, u64) {
        match self {
            Loss::Everything => (usize::MAX, 0),
            Loss::Requests(kept) => (usize::MAX, kept.into()),
            Loss::Pages(kept) => (PAGE, kept.into()),
            Loss::Sectors(kept) => (SECTOR, kept.into()),
        }
    }
}

/// What a power cut met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Sectors of 512 bytes in the cache that no flush had covered.
    pub pending_sectors: u64,
    /// Those of them that survived.
    pub kept_sectors: u64,
}

struct Pending {
    offset: u64,
    bytes: Box<[u8]>,
}

impl std::ops::Add for Cut {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            pending_sectors: self.pending_sectors + other.pending_sectors,
            kept_sectors: self.kept_sectors + other.kept_sectors,
        }
    }
}

/// The disk's bytes and its cache.
pub struct Cache {
    visible: Image,
    durable: Image,
    pending: VecDeque<Pending>,
    pending_bytes: usize,
}

impl Cache {
    /// A disk that holds `image`, durably.
    pub fn new(image: Image) -> Self {
        Cache { visible: image.clone(), durable: image, pending: VecDeque::new(), pending_bytes: 0 }
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.visible.size()
    }

    /// What everybody sees.
    pub fn read(&self, offset: u64, length: usize) -> Vec<u8> {
        self.visible.read(offset, length)
    }

    /// A write into the cache.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.visible.write(offset, bytes);
        self.pending.push_back(Pending { offset, bytes: bytes.into() });
        self.pending_bytes += bytes.len();
        while self.pending_bytes > CACHE_BYTES {
            self.destage_oldest();
        }
    }

    /// Makes everything durable that was written until now.
    pub fn flush(&mut self) {
        while self.destage_oldest() {}
    }

    fn destage_oldest(&mut self) -> bool {
        let Some(oldest) = self.pending.pop_front() else { return false };
        self.pending_bytes -= oldest.bytes.len();
        self.durable.write(oldest.offset, &oldest.bytes);
        true
    }

    /// Bytes that no flush has covered yet.
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// What would be there if the power failed and nothing of the cache survived.
    pub fn durable(&self) -> &Image {
        &self.durable
    }

    /// The power fails: the cache is empty, and some of it made it.
    pub fn cut(&mut self, loss: Loss, rng: &mut Rng) -> Cut {
        let (grain, kept) = loss.grain();
        let mut cut = Cut::default();
        for write in std::mem::take(&mut self.pending) {
            let mut at = 0;
            while at < write.bytes.len() {
                let start = write.offset + at as u64;
                // Units are aligned on the disk, not in the request.
                let room = if grain == usize::MAX { grain } else { grain - start as usize % grain };
                let end = at.saturating_add(room).min(write.bytes.len());
                let sectors = (end - at).div_ceil(SECTOR) as u64;
                cut.pending_sectors += sectors;
                if rng.u64(..100) < kept {
                    cut.kept_sectors += sectors;
                    self.durable.write(start, &write.bytes[at..end]);
                }
                at = end;
            }
        }
        self.pending_bytes = 0;
        self.visible = self.durable.clone();
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sectors(cache: &Cache, count: usize) -> Vec<u8> {
        cache.read(0, count * SECTOR).chunks(SECTOR).map(|sector| sector[0]).collect()
    }

    fn disk() -> Cache {
        let mut cache = Cache::new(Image::new(1 << 20));
        cache.write(0, &[1; 16 * SECTOR]);
        cache.flush();
        cache.write(0, &[2; 16 * SECTOR]);
        cache
    }

    #[test]
    fn what_was_flushed_survives_and_nothing_else_when_all_is_lost() {
        let mut cache = disk();
        assert_eq!(sectors(&cache, 16), [2; 16], "visible at once");
        let cut = cache.cut(Loss::Everything, &mut Rng::with_seed(1));
        assert_eq!(cut, Cut { pending_sectors: 16, kept_sectors: 0 });
        assert_eq!(sectors(&cache, 16), [1; 16]);
    }

    #[test]
    fn torn_sectors_are_whole_sectors_of_either_version() {
        let mut cache = disk();
        let cut = cache.cut(Loss::Sectors(50), &mut Rng::with_seed(1));
        let left = sectors(&cache, 16);
        assert!(left.contains(&1) && left.contains(&2), "{left:?}");
        assert_eq!(cut.kept_sectors, left.iter().filter(|&&s| s == 2).count() as u64);
        assert!(cache.read(0, 16 * SECTOR).chunks(SECTOR).all(|s| s.iter().all(|b| *b == s[0])));
    }

    #[test]
    fn pages_stay_together_wherever_the_request_began() {
        for seed in 0..50 {
            let mut cache = Cache::new(Image::new(1 << 20));
            cache.write(3 * SECTOR as u64, &[2; 26 * SECTOR]);
            cache.cut(Loss::Pages(50), &mut Rng::with_seed(seed));
            let left = sectors(&cache, 32);
            assert!(left[8..16].iter().all(|s| *s == left[8]), "{left:?}");
            assert!(left[16..24].iter().all(|s| *s == left[16]), "{left:?}");
        }
    }

    #[test]
    fn an_overwritten_sector_may_come_out_in_any_version() {
        let versions: std::collections::BTreeSet<u8> = (0..100)
            .map(|seed| {
                let mut cache = disk();
                cache.write(0, &[3; SECTOR]);
                cache.cut(Loss::Sectors(50), &mut Rng::with_seed(seed));
                cache.read(0, 1)[0]
            })
            .collect();
        assert_eq!(versions.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
    }
}
