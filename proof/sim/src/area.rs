//! A simulated disk under a spill area.
//!
//! A write that is under way is, at a power cut, in any mixture of old, new and garbled sectors on the disk; one that was
//! reported durable is there. A thread that is killed during a write leaves it done or not begun, as the kernel
//! does. A write fails: some of it is there all the same, and its writer gets EIO.
//!
//! Not simulated: a disk that lies; reads that fail (`seawall-core`'s tests do that).

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;

use seawall_core::format::{SpillEntry, slot_at};
use seawall_core::pool::Pool;

use crate::{Rng, sectors};

/// Where, and what.
type Written = (u64, Vec<u8>);

/// A write failed.
pub struct Failed;

/// The disk.
pub struct AreaDisk {
    file: File,
    under_way: RefCell<Option<Written>>,
    /// What an exploration has changed, as it was.
    before: RefCell<Vec<Written>>,
    /// One failed write in this many; 0 for none.
    failures: Cell<u64>,
}

impl AreaDisk {
    /// The disk of a pool's area; none for a pool without one.
    pub fn of(pool: &Pool) -> Option<Self> {
        let path = pool.area.as_ref()?.path();
        let file = File::options().read(true).write(true).open(path).expect("the area");
        Some(Self { file, under_way: RefCell::default(), before: RefCell::default(), failures: Cell::new(0) })
    }

    fn read(&self, at: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, at).expect("the area");
        bytes
    }

    fn put(&self, (at, bytes): &Written) {
        self.file.write_all_at(bytes, *at).expect("room");
    }

    /// What of the write under way is on the disk if the power goes now.
    fn tear(&self, rng: &Rng) -> Option<Written> {
        let under_way = self.under_way.borrow();
        let (at, new) = under_way.as_ref()?;
        let mut bytes = self.read(*at, new.len());
        sectors::tear(&mut bytes, new, rng);
        Some((*at, bytes))
    }

    /// Changes it until the exploration is over.
    fn alter(&self, written: &Written) {
        self.before.borrow_mut().push((written.0, self.read(written.0, written.1.len())));
        self.put(written);
    }

    /// Flips a bit of what a slot holds. False: none holds anything.
    pub fn flip(&self, rng: &Rng, pool: &Pool) -> bool {
        let retired = pool.retired().load(&pool.region).unwrap_or(u64::MAX);
        let entry = |slot| SpillEntry::of(pool.layout(), slot).load(&pool.region);
        let slots = 0..pool.area.as_ref().map_or(0, |area| area.slots());
        let live: Vec<u32> =
            slots.filter(|slot| entry(*slot).is_some_and(|e| e.last_lsn > retired)).collect();
        let Some(slot) = live.get(rng.below(live.len().max(1) as u64) as usize) else { return false };
        let bytes = pool.layout().segment_bytes;
        let at = slot_at(*slot, bytes) + rng.below(bytes.into());
        let flipped = self.read(at, 1)[0] ^ 1 << rng.below(8);
        self.alter(&(at, vec![flipped]));
        true
    }

    /// A write begins.
    pub fn begin<'a>(&'a self, rng: &'a Rng, at: u64, bytes: &[u8]) -> UnderWay<'a> {
        *self.under_way.borrow_mut() = Some((at, bytes.to_vec()));
        UnderWay { rng, disk: self }
    }

    fn fails(&self, rng: &Rng) -> bool {
        let failures = self.failures.get();
        failures > 0 && rng.one_in(failures)
    }

    /// Lets `f` see the disk as a power cut now leaves it.
    pub fn as_cut<R>(&self, rng: &Rng, f: impl FnOnce() -> R) -> R {
        if let Some(torn) = self.tear(rng) {
            self.alter(&torn);
        }
        let result = f();
        let before = std::mem::take(&mut *self.before.borrow_mut());
        before.iter().rev().for_each(|written| self.put(written));
        result
    }

    /// From now on one write in so many fails.
    pub fn may_fail(&self, failures: u64) {
        self.failures.set(failures);
    }

    /// The power goes: what is on the disk stays. It fails no more.
    pub fn cut(&self, rng: &Rng) {
        self.failures.set(0);
        if let Some(torn) = self.tear(rng) {
            self.put(&torn);
        }
        self.under_way.take();
    }
}

/// A write that may be cut short by its thread's death.
pub struct UnderWay<'a> {
    rng: &'a Rng,
    disk: &'a AreaDisk,
}

impl UnderWay<'_> {
    /// It is over: it is on the disk, or it fails, and any of its sectors may be there.
    pub fn end(self) -> Result<(), Failed> {
        let fails = self.disk.fails(self.rng);
        let torn = if fails { self.disk.tear(self.rng) } else { None };
        let written = self.disk.under_way.take();
        if let Some(written) = torn.or(written) {
            self.disk.put(&written);
        }
        if fails { Err(Failed) } else { Ok(()) }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        // Whoever issued it is gone, or it is done: the kernel does all of it, or never began.
        if let Some(write) = self.disk.under_way.take()
            && self.rng.one_in(2)
        {
            self.disk.put(&write);
        }
    }
}
