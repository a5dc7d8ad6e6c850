//! Operations under way: what a process would leave half done if it were killed now.
//!
//! Before an operation touches anything others see, it says here who it is and what it is about to touch; when it
//! has tidied up it takes that back. Any thread claims a free entry for the length of one operation, so forks,
//! signal handlers, and threads that nobody introduced are nothing special. Whoever is dead is for the
//! [reaper](super::reap).

use core::ops::Range;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use super::Cache;
use super::format::OPERATION_BYTES;

/// The owner of an operation: a process and a thread of it. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationOwner(u64);

impl OperationOwner {
    /// A thread of a process; both as the kernel numbers them.
    pub fn new(process: u32, thread: u32) -> Self {
        Self(u64::from(process.max(1)) << 32 | u64::from(thread))
    }

    /// A thread of a process that has this slot and generation among the clients of the log: what tells whether it
    /// lives. Threads whose numbers are different do not get in each other's way.
    pub fn of_client(slot: u32, generation: u32, thread: u32) -> Self {
        Self::new((slot + 1) & 0xffff | generation << 16, thread)
    }

    /// The client's slot, and the low 16 bits of its generation.
    pub fn client(self) -> (u32, u16) {
        ((self.process() & 0xffff).saturating_sub(1), (self.process() >> 16) as u16)
    }

    /// As a word, never 0.
    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// The owner with this word.
    pub(super) fn from_word(word: u64) -> Option<Self> {
        (word != 0).then_some(Self(word))
    }

    /// The process.
    pub fn process(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn spread(self) -> u32 {
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
    }
}

/// What is being done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// A place is being filled.
    Fill {
        /// Its number in the zone.
        place: u64,
    },
    /// Blocks are being written.
    Write {
        /// Their file.
        slot: u32,
        /// Their numbers.
        blocks: Range<u32>,
    },
    /// A whole file is being changed.
    Change {
        /// The file.
        slot: u32,
    },
}

/// An entry that is claimed.
pub struct Operation<'a> {
    entry: OperationEntry<'a>,
    number: u32,
}

/// View of an entry.
#[derive(Clone, Copy)]
pub struct OperationEntry<'a> {
    cache: &'a Cache,
    at: usize,
}

impl<'a> OperationEntry<'a> {
    fn word(self, i: usize) -> &'a AtomicU64 {
        self.cache.region.u64(self.at + i * 8)
    }

    /// Its owner.
    pub fn owner(self) -> Option<OperationOwner> {
        OperationOwner::from_word(self.word(0).load(Acquire))
    }

    /// What its owner does, if it says so yet.
    pub fn doing(self) -> Option<Doing> {
        let kind = self.word(1).load(Acquire);
        let (a, b) = (self.word(2).load(Acquire), self.word(3).load(Acquire));
        match kind {
            1 => Some(Doing::Fill { place: a }),
            2 => Some(Doing::Write { slot: a as u32, blocks: (b >> 32) as u32..b as u32 }),
            3 => Some(Doing::Change { slot: a as u32 }),
            _ => None,
        }
    }

    fn announce(self, doing: &Doing) {
        let (kind, a, b) = match doing {
            Doing::Fill { place } => (1, *place, 0),
            Doing::Write { slot, blocks } => {
                (2, u64::from(*slot), u64::from(blocks.start) << 32 | u64::from(blocks.end))
            }
            Doing::Change { slot } => (3, u64::from(*slot), 0),
        };
        self.word(2).store(a, Relaxed);
        self.word(3).store(b, Relaxed);
        // Seen by everybody who sees what it is about to do: that begins with a compare-and-swap.
        self.word(1).store(kind, Release);
    }

    /// Nothing is left to do, and whoever sees that sees what was done last.
    pub fn release(self) {
        self.word(1).store(0, Release);
        self.word(0).store(0, Release);
    }
}

impl Operation<'_> {
    /// Its number, which is what a place that is being filled says.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// It is done, and whatever it touched is in order.
    pub fn end(self) {
        self.entry.release();
    }
}

impl Cache {
    /// Claims an entry and says what is done. `None` if all are taken.
    pub(super) fn begin(&self, owner: OperationOwner, doing: Doing) -> Option<Operation<'_>> {
        let count = self.layout.operations;
        let first = owner.spread() % count;
        let numbers = (first..count).chain(0..first);
        let mut free = numbers.filter_map(|number| {
            let entry = self.entry(number);
            let word = entry.word(0);
            let is_ours =
                word.load(Relaxed) == 0 && word.compare_exchange(0, owner.0, SeqCst, Relaxed).is_ok();
            is_ours.then_some(Operation { entry, number })
        });
        let operation = free.next()?;
        operation.entry.announce(&doing);
        Some(operation)
    }

    /// Every entry, with its number.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u32, OperationEntry<'_>)> {
        (0..self.layout.operations).map(|number| (number, self.entry(number)))
    }

    fn entry(&self, number: u32) -> OperationEntry<'_> {
        OperationEntry { cache: self, at: self.layout.operations_at() + number as usize * OPERATION_BYTES }
    }
}
