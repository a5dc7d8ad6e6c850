//! A sample of what is asked for: what an [advisory](crate::advisory) is made of.
//!
//! Of one block in [`ONE_IN`], by its hash, every access is noted in a circular buffer that all processes write and one reads.
//! Nobody waits: a reader that is too late misses some, and one that is being stored may be seen as an older one.

#[cfg(feature = "std")]
use core::sync::atomic::Ordering::Acquire;
use core::sync::atomic::Ordering::Relaxed;

use super::Cache;
use super::format::SAMPLE_BYTES;
#[cfg(feature = "std")]
use crate::access::Access;
use crate::key::Block;

/// One block in so many.
pub const ONE_IN: u64 = 64;
const ENTRIES_AT: usize = 64;
const ENTRIES: u64 = ((SAMPLE_BYTES - ENTRIES_AT) / 8) as u64;
const WRITE: u64 = 1 << 63;

/// True for the blocks of the sample. Independent of the block's set.
#[inline]
pub fn is_sampled(block: Block) -> bool {
    block.hash().is_multiple_of(ONE_IN)
}

impl Cache {
    /// A block was hit, or came from the disk.
    #[inline]
    pub(super) fn sample_read(&self, block: Block) {
        if is_sampled(block) {
            self.sample(u64::from(block.file) << 32 | u64::from(block.number));
        }
    }

    /// A block is written.
    #[inline]
    pub(super) fn sample_write(&self, block: Block) {
        if is_sampled(block) {
            self.sample(WRITE | u64::from(block.file) << 32 | u64::from(block.number));
        }
    }

    #[cold]
    fn sample(&self, entry: u64) {
        let at = self.layout.samples_at();
        let nth = self.region.u64(at).fetch_add(1, Relaxed) % ENTRIES;
        self.region.u64(at + ENTRIES_AT + nth as usize * 8).store(entry, Relaxed);
    }

    /// What was sampled since `since`, as far as it is still there, and what to ask with the next time. 0 at first.
    #[cfg(feature = "std")]
    pub fn samples(&self, since: u64) -> (Vec<Access>, u64) {
        let at = self.layout.samples_at();
        let now = self.region.u64(at).load(Acquire);
        let first = since.max(now.saturating_sub(ENTRIES)).min(now);
        let sampled = (first..now).map(|nth| {
            let entry = self.region.u64(at + ENTRIES_AT + (nth % ENTRIES) as usize * 8).load(Relaxed);
            let block = Block { file: ((entry & !WRITE) >> 32) as u32, number: entry as u32 };
            if entry & WRITE == 0 { Access::Read(block) } else { Access::Write(block) }
        });
        (sampled.collect(), now)
    }
}
