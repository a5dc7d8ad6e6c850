//! A request's descriptors, as the guest laid them out, checked: what it gives us to read, and where we may write.
//!
//! Not the queue's own iterator: a request that the former process left unanswered is no longer in the available ring, and is found
//! by its first descriptor alone.

use std::mem::size_of;

use virtio_queue::desc::split::Descriptor;
use vm_memory::{Address, Bytes, GuestAddress, GuestMemory, Permissions};

use crate::memory::{Memory, Slice};

/// A stretch of the guest's memory.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    at: GuestAddress,
    bytes: usize,
}

/// What a request consists of.
#[derive(Default)]
pub struct Chain {
    /// What the guest gives, in order.
    pub given: Vec<Stretch>,
    /// Where it wants its answer, in order.
    pub wanted: Vec<Stretch>,
}

/// The guest breaks the rules of its ring: where an answer would go is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl Chain {
    /// The chain that begins at `head` of a table of `size` descriptors.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(memory: &Memory, table: u64, size: u16, head: u16) -> Result<Self, Malformed> {
        let mut chain = Self::default();
        // A chain has no more descriptors than the queue, those of an indirect table among them: so loops end.
        let mut left = size;
        chain.walk(memory, (GuestAddress(table), size), head, &mut left, true)?;
        Ok(chain)
    }

    fn walk(
        &mut self,
        memory: &Memory,
        (table, size): (GuestAddress, u16),
        head: u16,
        left: &mut u16,
        may_be_indirect: bool,
    ) -> Result<(), Malformed> {
        let mut next = head;
        loop {
            if next >= size {
                return Err(Malformed("a descriptor outside of its table"));
            }
            *left = left.checked_sub(1).ok_or(Malformed("a chain that is too long, or goes round"))?;
            let at = table.checked_add(u64::from(next) * size_of::<Descriptor>() as u64);
            let descriptor: Descriptor = at
                .and_then(|at| memory.read_obj(at).ok())
                .ok_or(Malformed("a descriptor table outside of memory"))?;
            if descriptor.refers_to_indirect_table() {
                if !may_be_indirect || descriptor.has_next() {
                    return Err(Malformed("an indirect table where none may be"));
                }
                let bytes = descriptor.len() as usize;
                let entries = bytes / size_of::<Descriptor>();
                let entries = u16::try_from(entries)
                    .ok()
                    .filter(|n| *n > 0 && bytes.is_multiple_of(size_of::<Descriptor>()));
                let entries = entries.ok_or(Malformed("an indirect table of an odd length"))?;
                // Its entries take the place of this one.
                *left += 1;
                return self.walk(memory, (descriptor.addr(), entries), 0, left, false);
            }
            self.take(memory, &descriptor)?;
            if !descriptor.has_next() {
                return Ok(());
            }
            next = descriptor.next();
        }
    }

    fn take(&mut self, memory: &Memory, descriptor: &Descriptor) -> Result<(), Malformed> {
        let stretch = Stretch { at: descriptor.addr(), bytes: descriptor.len() as usize };
        if !memory.check_range(stretch.at, stretch.bytes, Permissions::ReadWrite) {
            return Err(Malformed("a buffer outside of memory"));
        }
        match descriptor.is_write_only() {
            true => self.wanted.push(stretch),
            false if self.wanted.is_empty() => self.given.push(stretch),
            false => return Err(Malformed("a buffer to be read behind one to be written")),
        }
        Ok(())
    }

    /// Takes the first `into.len()` bytes that the guest gives. False: it gives less.
    pub fn take_first(&mut self, memory: &Memory, into: &mut [u8]) -> bool {
        let mut rest = into;
        while !rest.is_empty() {
            let Some(first) = self.given.first_mut() else { return false };
            let n = rest.len().min(first.bytes);
            let (now, later) = rest.split_at_mut(n);
            if memory.read_slice(now, first.at).is_err() {
                return false;
            }
            rest = later;
            first.at = GuestAddress(first.at.0.wrapping_add(n as u64));
            first.bytes -= n;
            if first.bytes == 0 {
                self.given.remove(0);
            }
        }
        true
    }

    /// Takes the last byte where the guest wants an answer: the status.
    pub fn take_status(&mut self) -> Option<GuestAddress> {
        while self.wanted.last().is_some_and(|last| last.bytes == 0) {
            self.wanted.pop();
        }
        let last = self.wanted.last_mut()?;
        last.bytes -= 1;
        let status = GuestAddress(last.at.0 + last.bytes as u64);
        if last.bytes == 0 {
            self.wanted.pop();
        }
        Some(status)
    }
}

/// How many bytes these have.
pub fn length(stretches: &[Stretch]) -> u64 {
    stretches.iter().map(|stretch| stretch.bytes as u64).sum()
}

/// The memory of these. `None`: it is not there any more.
pub fn slices<'m>(memory: &'m Memory, stretches: &[Stretch]) -> Option<Vec<Slice<'m>>> {
    let mut all = Vec::with_capacity(stretches.len());
    for stretch in stretches {
        for slice in memory.get_slices(stretch.at, stretch.bytes, Permissions::ReadWrite).ok()? {
            all.push(slice.ok()?);
        }
    }
    Some(all)
}
