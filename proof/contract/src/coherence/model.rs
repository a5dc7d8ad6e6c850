//! Which versions a look may find.
//!
//! A block says its version in every word; zeros stand for the last change that made them. A look may find any version from
//! the one that was acknowledged before it began to the last that was begun before it ended, in one block several of them.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use super::memory::{BLOCK, BLOCKS};

#[derive(Default)]
struct Block {
    /// One writer at a time.
    writer: Mutex<()>,
    begun: AtomicU64,
    zeroed: AtomicU64,
    /// To everybody.
    acknowledged: AtomicU64,
    /// To whoever opens the file afterwards.
    acknowledged_at_open: AtomicU64,
}

/// A file's versions.
pub struct Model {
    blocks: Vec<Block>,
    last: AtomicU64,
    /// Held to make the file shorter: a mapping must not be touched behind its end.
    pub shorter: RwLock<()>,
}

impl Default for Model {
    fn default() -> Model {
        let blocks = (0..BLOCKS).map(|_| Block::default()).collect();
        Model { blocks, last: AtomicU64::new(0), shorter: RwLock::new(()) }
    }
}

/// A change under way.
pub struct Change<'m> {
    blocks: &'m [Block],
    _writers: Vec<MutexGuard<'m, ()>>,
    /// What it writes.
    pub version: u64,
}

impl Change<'_> {
    /// It is done. Whoever has the file open already does not see it, if it was made behind the mount.
    pub fn acknowledge(self, is_behind: bool) {
        for block in self.blocks {
            block.acknowledged_at_open.store(self.version, SeqCst);
            if !is_behind {
                block.acknowledged.store(self.version, SeqCst);
            }
        }
    }
}

/// What is known before a look.
pub struct Before {
    first: usize,
    oldest: Vec<u64>,
}

impl Model {
    /// Begins a change of some blocks: the versions of two of the same block come one after the other.
    pub fn change(&self, first: usize, count: usize, zeros: bool) -> Change<'_> {
        let blocks = &self.blocks[first..first + count];
        let writers =
            blocks.iter().map(|block| block.writer.lock().unwrap_or_else(PoisonError::into_inner)).collect();
        let version = self.last.fetch_add(1, SeqCst) + 1;
        for block in blocks {
            block.begun.store(version, SeqCst);
            if zeros {
                block.zeroed.store(version, SeqCst);
            }
        }
        Change { blocks, _writers: writers, version }
    }

    /// A look begins, perhaps with an open.
    pub fn before(&self, first: usize, count: usize, opens: bool) -> Before {
        let oldest = self.blocks[first..first + count].iter().map(|block| match opens {
            true => block.acknowledged_at_open.load(SeqCst),
            false => block.acknowledged.load(SeqCst),
        });
        Before { first, oldest: oldest.collect() }
    }

    /// A look has ended. What it has of the file goes as far as the file did.
    pub fn check(&self, before: &Before, found: &[u8]) -> Result<(), String> {
        for (i, oldest) in before.oldest.iter().enumerate() {
            let block = &self.blocks[before.first + i];
            let (zeroed, begun) = (block.zeroed.load(SeqCst), block.begun.load(SeqCst));
            let words = found.get(i * BLOCK..).unwrap_or_default().chunks_exact(8).take(BLOCK / 8);
            let words = words.map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")));
            let mut versions = words.map(|word| if word == 0 { zeroed } else { word });
            if let Some(wrong) = versions.find(|version| version < oldest || *version > begun) {
                let at = before.first + i;
                return Err(format!(
                    "block {at} has version {wrong}; {oldest} was acknowledged before, {begun} is the last"
                ));
            }
        }
        Ok(())
    }
}
