//! Writes to devices that are under way, and what a power cut leaves of them.

use std::os::unix::fs::FileExt;

use super::{Block, Written};
use crate::{Rng, sectors};

impl Block {
    /// A write begins.
    pub fn begin<'a>(&'a self, rng: &'a Rng, thread: usize, written: Written) -> UnderWay<'a> {
        self.under_way.borrow_mut().insert(thread, written);
        UnderWay { rng, block: self, thread }
    }

    /// What of the writes under way is on the devices if the power goes now.
    pub fn tear(&self, rng: &Rng) -> Vec<Written> {
        self.under_way.borrow().values().map(|write| self.torn(write, rng)).collect()
    }

    fn torn(&self, (copy, at, new): &Written, rng: &Rng) -> Written {
        let mut bytes = vec![0; new.len()];
        self.devices[*copy].journal.read_exact_at(&mut bytes, *at).expect("the journal");
        sectors::tear(&mut bytes, new, rng);
        (*copy, *at, bytes)
    }

    /// The power goes: of the writes under way what is on the device stays.
    pub fn stop(&self, rng: &Rng) {
        self.tear(rng).iter().for_each(|torn| self.put(torn));
        self.under_way.take();
    }
}

/// A write that may be cut short by its thread's death.
pub struct UnderWay<'a> {
    rng: &'a Rng,
    block: &'a Block,
    thread: usize,
}

impl UnderWay<'_> {
    fn take(&self) -> Option<Written> {
        self.block.under_way.borrow_mut().remove(&self.thread)
    }

    /// It is done.
    pub fn end(self) {
        if let Some(written) = self.take() {
            self.block.put(&written);
        }
    }

    /// It fails, or the flush behind it: any of its sectors may be there.
    pub fn fail(self, copy: usize) {
        let block = self.block;
        if let Some(write) = self.take() {
            block.put(&block.torn(&write, self.rng));
        }
        match block.devices.len() {
            1 => block.has_failed.set(true),
            _ => block.doomed.set(Some(copy)),
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        // Whoever issued it is gone, or it is done: the kernel does all of it, or never began.
        if let Some(write) = self.take()
            && self.rng.one_in(2)
        {
            self.block.put(&write);
        }
    }
}
