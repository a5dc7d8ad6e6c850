//! A simulated block device under a journal.
//!
//! A write that is under way is, at a power cut, in any mixture of old, new and garbled sectors on the device; one
//! that was reported durable is there. Each crash image is read back by the production reader. Who is killed
//! during a write leaves it done or not begun, as the kernel does.
//!
//! A write fails: some of it is on the device all the same, and whoever made it is told EIO.
//!
//! Not simulated here: a device that lies (`seawall-core`, tests of the journal).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::SeqCst;

use seawall_core::pool::Pool;
use seawall_media::Region;
use seawall_media::block::{JournalError, RING_AT, read};
use seawall_wire::desk::Desk;

use crate::Rng;
use crate::image::units_of;
use crate::pending::{LINE, Units};
use crate::world::World;

/// What a device writes whole.
const SECTOR: usize = 512;
const EIO: i32 = 5;
/// The desk's words.
const WORDS: usize = 4096;

/// The device.
pub struct Block {
    journal: File,
    len: u64,
    desk_at: usize,
    /// The write under way.
    under_way: RefCell<Option<(u64, Vec<u8>)>>,
    /// The image's lines that are not zero, as the device has them.
    lines: RefCell<BTreeMap<u32, Units>>,
    at_death: RefCell<Option<Vec<u8>>>,
    /// One failed write in this many; 0 for none.
    failures: Cell<u64>,
    /// A write failed since the log was recovered.
    has_failed: Cell<bool>,
}

impl Block {
    /// The device of a pool; none for one in memory.
    pub fn of(pool: &Pool) -> Option<Self> {
        let desk_at = pool.region.journal()?.desk_at();
        let journal = File::options().read(true).write(true).open(&pool.path).expect("the journal");
        let len = journal.metadata().expect("a size").len();
        let block = Self {
            journal,
            len,
            desk_at,
            under_way: RefCell::default(),
            lines: RefCell::default(),
            at_death: RefCell::default(),
            failures: Cell::new(0),
            has_failed: Cell::new(false),
        };
        let lines = block.read(None).expect("a fresh journal");
        *block.lines.borrow_mut() = lines;
        Some(block)
    }

    /// The image that the journal amounts to, with this write on top of it, torn or not.
    fn read(&self, torn: Option<&(u64, Vec<u8>)>) -> Result<BTreeMap<u32, Units>, JournalError> {
        let mut device = vec![0; self.len as usize];
        self.journal.read_exact_at(&mut device, 0).expect("the journal");
        if let Some((at, bytes)) = torn {
            device[*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes);
        }
        let mut lines = BTreeMap::new();
        let read_at = |into: &mut [u8], at: u64| {
            into.copy_from_slice(&device[at as usize..at as usize + into.len()]);
            Ok(())
        };
        read(self.len, read_at, |at, bytes| {
            for (i, line) in bytes.chunks_exact(LINE).enumerate() {
                lines.insert((at as usize / LINE + i) as u32, units_of(line));
            }
        })?;
        Ok(lines)
    }

    /// What of the write under way is on the device if the power goes now.
    fn tear(&self, rng: &Rng) -> Option<(u64, Vec<u8>)> {
        let under_way = self.under_way.borrow();
        let (at, new) = under_way.as_ref()?;
        let mut bytes = vec![0; new.len()];
        self.journal.read_exact_at(&mut bytes, *at).expect("the journal");
        let (share, garbled) = (rng.pick(&[0, 16, 128, 240, 256]), rng.one_in(4));
        for (old, new) in bytes.chunks_mut(SECTOR).zip(new.chunks(SECTOR)) {
            if rng.below(256) < share {
                old.copy_from_slice(new);
            } else if garbled && rng.one_in(4) {
                old.fill(rng.next() as u8);
            }
        }
        Some((*at, bytes))
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.journal.write_all_at(bytes, at).expect("room");
    }

    /// From now on one write in so many fails.
    pub fn may_fail(&self, failures: u64) {
        self.failures.set(failures);
    }

    /// True if a write failed since the log was recovered.
    pub fn has_failed(&self) -> bool {
        self.has_failed.get()
    }

    /// The log was recovered: nothing is left of a failure.
    pub fn recovered(&self) {
        self.has_failed.set(false);
    }

    /// The power goes: what is on the device stays. It fails no more.
    pub fn cut(&self, world: &World) {
        self.failures.set(0);
        if let Some((at, bytes)) = self.tear(&world.rng) {
            self.put(at, &bytes);
        }
        self.under_way.take();
        self.settle(world);
    }

    /// The device's content is what is persisted.
    fn settle(&self, world: &World) {
        match self.read(None) {
            Ok(now) => {
                let changed = self.changed(world, &now);
                world.image.settle(&changed);
                *self.lines.borrow_mut() = now;
            }
            Err(e) => world.violate(format!("the journal: {e}")),
        }
    }

    /// The lines in which an image differs from the persisted one.
    fn changed(&self, world: &World, now: &BTreeMap<u32, Units>) -> Vec<(u32, Units)> {
        let before = self.lines.borrow();
        let gone = before.keys().filter(|line| !now.contains_key(line)).map(|line| (*line, [0; 8]));
        let new = now.iter().map(|(line, units)| (*line, *units));
        gone.chain(new).filter(|(line, units)| world.image.line(*line) != *units).collect()
    }

    /// Keeps the desk's words as they are: a kill is about to tidy them up.
    pub fn remember(&self, memory: &Region) {
        let mut words = vec![0; WORDS];
        memory.read(self.desk_at, &mut words);
        *self.at_death.borrow_mut() = Some(words);
    }

    /// The process that leads, 0 for none.
    pub fn holder(&self, memory: &Region) -> u32 {
        (Desk::new(memory, self.desk_at).lock().load(SeqCst) >> 32) as u32
    }

    /// Undoes what the tidying did.
    pub fn restore(&self, memory: &Region) {
        if let Some(words) = self.at_death.borrow_mut().take() {
            memory.copy_in(self.desk_at, &words);
        }
    }
}

/// A write that may be cut short by its thread's death.
struct UnderWay<'a> {
    world: &'a World,
    block: &'a Block,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        // Whoever issued it is gone, or it is done: the kernel does all of it, or never began.
        if let Some((at, bytes)) = self.block.under_way.take()
            && self.world.rng.one_in(2)
        {
            self.block.put(at, &bytes);
        }
    }
}

impl World {
    /// A durable write.
    pub fn write_block(&self, position: u64, bytes: &[u8]) -> Result<(), i32> {
        let Some(block) = &self.block else { return Err(5) };
        if self.is_quiet() {
            block.put(position, bytes);
            block.settle(self);
            return Ok(());
        }
        self.count(|c| c.device_writes += 1);
        if position < RING_AT {
            self.count(|c| c.cleaned += 1);
        }
        self.tell(|| format!("device write {position}+{}", bytes.len()));
        self.point();
        let under_way = UnderWay { world: self, block };
        *block.under_way.borrow_mut() = Some((position, bytes.to_vec()));
        self.point();
        if self.rng.one_in(2) {
            // Devices are slow: others go on meanwhile.
            self.give_way();
            self.point();
        }
        let failures = block.failures.get();
        if failures > 0 && self.rng.one_in(failures) {
            return self.fail_block(block, position);
        }
        let written = block.under_way.take();
        drop(under_way);
        if let Some((at, bytes)) = written {
            block.put(at, &bytes);
        }
        self.peek(|| block.settle(self));
        self.point();
        Ok(())
    }

    /// The write under way fails, or the flush behind it: any of its sectors may be there.
    fn fail_block(&self, block: &Block, position: u64) -> Result<(), i32> {
        self.count(|c| c.device_failures += 1);
        self.tell(|| format!("device write {position} fails"));
        if let Some((at, bytes)) = block.tear(&self.rng) {
            block.put(at, &bytes);
        }
        block.under_way.take();
        block.has_failed.set(true);
        self.peek(|| block.settle(self));
        self.point();
        Err(EIO)
    }

    /// True if the log's device failed since the log was recovered.
    pub fn log_has_failed(&self) -> bool {
        self.block.as_ref().is_some_and(Block::has_failed)
    }

    /// The lines of the pool that a power cut now leaves other than persisted. `None`: it is over.
    pub fn survivors(&self) -> Option<Vec<(u32, Units)>> {
        let Some(block) = &self.block else {
            let survival = crate::Survival::draw(&self.rng);
            return Some(self.pending.borrow().crash(survival, &self.rng, |line| self.image.line(line)));
        };
        // Between writes the device holds what is persisted.
        let Some(torn) = block.tear(&self.rng) else { return Some(Vec::new()) };
        match block.read(Some(&torn)) {
            Ok(now) => Some(block.changed(self, &now)),
            Err(e) => {
                self.violate(format!("a power cut in a device write: {e}"));
                None
            }
        }
    }
}
