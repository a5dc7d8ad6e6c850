//! What is written to the log's own devices: the journal's, or the disk of a spill area. Others go on meanwhile, the
//! thread may die in it, and the power may be cut at every moment of it.

use super::{EIO, World};
use crate::area::AreaDisk;
use crate::block::under_way::UnderWay;
use crate::block::{Block, Lie};
use crate::pending::Units;
use seawall_media::block::RING_AT;

impl World {
    /// A durable write.
    pub fn write_block(&self, fd: i32, position: u64, bytes: &[u8]) -> Result<(), i32> {
        let Some(block) = &self.block else { return Err(EIO) };
        let copy = block.device_of(fd);
        if self.is_quiet() {
            block.put(&(copy, position, bytes.to_vec()));
            self.settle_block(block);
            return Ok(());
        }
        self.count(|c| c.device_writes += 1);
        if position < RING_AT {
            self.count(|c| c.cleaned += 1);
        } else if self.company() > 1 {
            self.count(|c| c.shared += 1);
        }
        self.tell(|| format!("device write {position}+{}", bytes.len()));
        self.point();
        let under_way = block.begin(&self.rng, self.thread.get(), (copy, position, bytes.to_vec()));
        self.point();
        if self.rng.one_in(2) {
            // Devices are slow: others go on meanwhile, in a crowd all of them.
            (0..if self.crowded { self.rng.below(40) } else { 1 }).for_each(|_| self.give_way());
            self.point();
        }
        if block.fails(copy, &self.rng) {
            return self.fail_block(block, under_way, copy, position);
        }
        under_way.end();
        self.peek(|| self.settle_block(block));
        self.point();
        Ok(())
    }

    fn fail_block(&self, block: &Block, under_way: UnderWay<'_>, copy: usize, at: u64) -> Result<(), i32> {
        self.count(|c| c.device_failures += 1);
        self.tell(|| format!("device write {at} fails"));
        under_way.fail(copy);
        self.peek(|| self.settle_block(block));
        self.point();
        Err(EIO)
    }

    fn settle_block(&self, block: &Block) {
        if let Err(e) = block.settle(&self.image) {
            self.violate(format!("the journal: {e}"));
        }
    }

    /// The power goes: what is on the devices stays, but for what one of them had lied about.
    pub fn cut_block(&self, block: &Block) {
        block.stop(&self.rng);
        if let Some(liar) = block.liar(&self.rng)
            && let Some(left) = self.believable(block, liar, &block.contents(&[]))
        {
            self.tell(|| format!("copy {liar} had lied"));
            block.leave(liar, &left);
        }
        block.calm();
        self.settle_block(block);
        block.forget();
    }

    /// What is left of the copy that lied, if that is believed of the two.
    fn believable(&self, block: &Block, liar: usize, contents: &[Vec<u8>]) -> Option<Vec<u8>> {
        let left = block.believable(&self.rng, liar, contents);
        self.count(|c| match left {
            None => c.lies_found += 1,
            Some(_) => c.lies_outvoted += 1,
        });
        left
    }

    /// Where an image has no memory yet nobody does anything: one page more than there is room for is a SIGBUS.
    pub fn has_memory(&self, done: &str, at: usize, len: usize) {
        let Some(block) = &self.block else { return };
        let (from, to) = self.peek(|| block.without_memory(&self.view.borrow()));
        if at < to && at + len > from {
            self.violate(format!(
                "{len} bytes at {at} are {done}, where from {from} on no memory is reserved"
            ));
        }
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
        if block.is_alone() && self.rng.one_in(8) {
            self.lie(block);
        }
        let (torn, liar) = (block.tear(&self.rng), block.liar(&self.rng));
        if torn.is_empty() && liar.is_none() {
            // Between writes the device holds what is persisted.
            return Some(Vec::new());
        }
        let mut contents = block.contents(&torn);
        if let Some(liar) = liar {
            contents[liar] = self.believable(block, liar, &contents)?;
        }
        match block.read_of(&contents) {
            Ok(now) => Some(block.changed(&self.image, &now)),
            Err(e) => {
                self.violate(format!("a power cut in a device write: {e}"));
                None
            }
        }
    }

    fn lie(&self, block: &Block) {
        match block.lie(&self.rng) {
            Lie::Found => self.count(|c| c.lies_found += 1),
            Lie::Believed(verdict) => {
                self.count(|c| c.lies_believed += 1);
                if let Err(why) = verdict {
                    self.violate(why);
                }
            }
        }
    }

    /// A durable write to the area.
    pub fn write_area(&self, disk: &AreaDisk, at: u64, bytes: &[u8]) -> Result<(), i32> {
        self.tell(|| format!("area write {at}+{}", bytes.len()));
        self.count(|c| c.area_writes += 1);
        self.point();
        let under_way = disk.begin(&self.rng, at, bytes);
        for _ in 0..3 {
            // Disks are slow: others go on meanwhile.
            self.point();
            self.give_way();
        }
        let done = under_way.end();
        self.point();
        if done.is_ok() {
            return Ok(());
        }
        self.count(|c| c.area_failures += 1);
        self.tell(|| format!("area write {at} fails"));
        Err(EIO)
    }

    /// Lets `f` see the area as a power cut now leaves it.
    pub fn with_area<R>(&self, f: impl FnOnce() -> R) -> R {
        match &self.area {
            Some(disk) => disk.as_cut(&self.rng, f),
            None => f(),
        }
    }
}
