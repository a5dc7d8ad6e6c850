//! How often each file is hit, and how often not: an estimate, of one read in [`ONE_READ_IN`].
//!
//! Chosen are reads, not blocks as in the [samples](super::sample): a file of few blocks that are read all the time is
//! counted as well as one of many. What chooses is the time-stamp counter that the reader has read anyway. So of 64
//! reads 63 store nothing, and the line of the file's counts, which all its readers share, changes hands as seldom.
//!
//! Counted since the file was served; meaningless after a restart.

use core::sync::atomic::Ordering::Relaxed;

use seawall_media::mix;

use super::format::FileRecord;
use super::{Cache, CachedFile};

/// One read in so many is counted, for that many.
pub const ONE_READ_IN: u64 = 64;

/// Whether the read that began at this reading of the time-stamp counter is counted.
#[inline]
pub fn is_counted(ticks: u64) -> bool {
    // A counter may have a step larger than 1.
    mix(ticks | 1 << 63).is_multiple_of(ONE_READ_IN)
}

impl Cache {
    /// A read that [is counted](is_counted) found so many blocks, or went to the disk so often.
    #[cold]
    pub fn count_read(&self, file: CachedFile, hits: u64, misses: u64) {
        let Some(at) = self.file_at(file.slot) else { return };
        for (field, n) in [(FileRecord::HITS, hits), (FileRecord::MISSES, misses)] {
            if n > 0 {
                self.region.u64(at + field).fetch_add(n * ONE_READ_IN, Relaxed);
            }
        }
    }

    /// Nothing is counted yet.
    #[cfg(feature = "std")]
    pub(super) fn count_anew(&self, file: CachedFile) {
        let Some(at) = self.file_at(file.slot) else { return };
        for field in [FileRecord::HITS, FileRecord::MISSES] {
            self.region.u64(at + field).store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the counter's step, and wherever it began.
    #[test]
    fn about_one_reading_in_64_is_counted() {
        for step in [1, 2, 26, 64, 1000, 4096, 1 << 20] {
            for begin in [0, 1 << 40, u64::MAX >> 2] {
                let counted = (0..64_000).filter(|n| is_counted(begin + n * step)).count();
                assert!((850..1150).contains(&counted), "{counted} of 1000: step {step} from {begin}");
            }
        }
    }
}
