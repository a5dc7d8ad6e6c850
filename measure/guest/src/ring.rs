//! One queue in the guest's memory: where everything is, and how requests get into it.
//!
//! ```text
//! base + 0      descriptors 16 × 128
//!      + 4096   available ring
//!      + 8192   used ring
//!      + 12288  heads and statuses, 64 × 32
//!      + 64 KiB data, 64 KiB × 32
//! ```

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

use virtio_queue::desc::split::Descriptor;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

/// Descriptors of a queue.
pub const QUEUE: u16 = 128;
/// Requests that a queue has room for at once. Each has four descriptors of its own.
pub const SLOTS: u16 = 32;
/// Bytes that one request moves at most.
pub const SLOT_BYTES: usize = 64 << 10;
/// Bytes of one queue with all that its requests move.
pub const BYTES: u64 = (64 << 10) + SLOTS as u64 * SLOT_BYTES as u64;

const AVAILABLE: u64 = 4096;
const USED: u64 = 8192;
const HEADS: u64 = 12288;
const HEAD: u64 = 64;
const DATA: u64 = 64 << 10;

const NEXT: u16 = 1;
const WRITE: u16 = 2;

/// What to ask for. Offsets and lengths in bytes, multiples of 512.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// So many bytes from here.
    Read(u64, usize),
    /// These from here.
    Write(u64, Vec<u8>),
    /// Everything that was answered is durable.
    Flush,
    /// Nobody needs these.
    Discard(u64, u32),
    /// These are zero.
    Zeros(u64, u32),
    /// The disk's serial number.
    Id,
}

/// Any descriptors: address, length, flags, next.
pub type Raw = (u64, u32, u16, u16);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Of which request.
    pub slot: u16,
    /// 0 done, 1 failed, 2 not known; 255 if there was none.
    pub status: u8,
    /// What was read.
    pub data: Vec<u8>,
}

/// A queue.
pub struct Ring {
    base: u64,
    memory: GuestMemoryMmap<()>,
    /// What each slot waits for.
    pending: Vec<Option<Op>>,
    available: u16,
    used: u16,
}

impl Ring {
    /// A queue whose memory begins here.
    pub fn new(memory: GuestMemoryMmap<()>, base: u64) -> Self {
        Self { base, memory, pending: vec![None; usize::from(SLOTS)], available: 0, used: 0 }
    }

    /// The same one with other memory, which has what this one has.
    pub(crate) fn over(self, memory: GuestMemoryMmap<()>) -> Self {
        Self { memory, ..self }
    }

    /// The guest's memory.
    pub(crate) fn memory(&self) -> &GuestMemoryMmap<()> {
        &self.memory
    }

    /// The guest's address where it begins.
    pub(crate) fn begin(&self) -> u64 {
        self.base
    }

    /// True if the guest itself may have written the page at this address: not the used ring, and not where an answer goes.
    pub(crate) fn writes(&self, at: u64) -> bool {
        let offset = at - self.base;
        if offset < DATA {
            return offset != USED;
        }
        let slot = ((offset - DATA) / SLOT_BYTES as u64) as usize;
        !matches!(self.pending.get(slot), Some(Some(Op::Read(..) | Op::Id)))
    }

    /// The guest's addresses of its descriptors, its available and its used ring.
    pub fn places(&self) -> [u64; 3] {
        [self.base, self.base + AVAILABLE, self.base + USED]
    }

    fn at(&self, offset: u64) -> GuestAddress {
        GuestAddress(self.base + offset)
    }

    /// The index of the used ring, as QEMU would tell a new backend.
    pub fn used_index(&self) -> u16 {
        self.memory.load(self.at(USED + 2), Acquire).unwrap_or_default()
    }

    /// A slot that waits for nothing.
    pub fn free(&self) -> Option<u16> {
        self.pending.iter().position(Option::is_none).map(|slot| slot as u16)
    }

    /// Slots that wait for an answer, and for which.
    pub fn pending(&self) -> impl Iterator<Item = (u16, &Op)> {
        self.pending.iter().enumerate().filter_map(|(slot, op)| Some((slot as u16, op.as_ref()?)))
    }

    /// The first descriptor of a slot's request.
    pub fn head(slot: u16) -> u16 {
        slot * 4
    }

    /// Puts a request into the ring.
    pub fn put(&mut self, slot: u16, op: Op) {
        let head = self.at(HEADS + HEAD * u64::from(slot));
        let status = GuestAddress(head.0 + 32);
        let data = self.at(DATA + SLOT_BYTES as u64 * u64::from(slot));
        let (kind, sector): (u32, u64) = match &op {
            Op::Read(at, _) => (0, at / 512),
            Op::Write(at, _) => (1, at / 512),
            Op::Flush => (4, 0),
            Op::Id => (8, 0),
            Op::Discard(..) => (11, 0),
            Op::Zeros(..) => (13, 0),
        };
        let (bytes, flags) = match &op {
            Op::Read(_, len) => (*len, WRITE),
            Op::Id => (20, WRITE),
            Op::Write(_, bytes) => {
                self.store(bytes, data);
                (bytes.len(), 0)
            }
            Op::Discard(at, len) | Op::Zeros(at, len) => {
                let mut range = [0; 16];
                range[..8].copy_from_slice(&(at / 512).to_le_bytes());
                range[8..12].copy_from_slice(&(len / 512).to_le_bytes());
                self.store(&range, data);
                (range.len(), 0)
            }
            Op::Flush => (0, 0),
        };
        self.store(&kind.to_le_bytes(), head);
        self.store(&0_u32.to_le_bytes(), GuestAddress(head.0 + 4));
        self.store(&sector.to_le_bytes(), GuestAddress(head.0 + 8));
        self.store(&[255], status);
        let first = Self::head(slot);
        let mut chain = vec![(head.0, 16, NEXT, first + 1)];
        if bytes > 0 {
            chain.push((data.0, bytes as u32, flags | NEXT, first + 2));
        }
        chain.push((status.0, 1, WRITE, 0));
        self.pending[usize::from(slot)] = Some(op);
        self.put_raw(first, &chain);
    }

    /// Puts any descriptors from `first` on into the table, and offers that one.
    pub fn put_raw(&mut self, first: u16, chain: &[Raw]) {
        for (i, (at, len, flags, next)) in chain.iter().enumerate() {
            let place = self.at(16 * (u64::from(first) + i as u64));
            let descriptor = Descriptor::new(*at, *len, *flags, *next);
            let _ = self.memory.write_obj(descriptor, place);
        }
        self.offer(first);
    }

    /// Offers a head, whatever it is.
    pub fn offer(&mut self, head: u16) {
        let place = self.at(AVAILABLE + 4 + 2 * u64::from(self.available % QUEUE));
        let _ = self.memory.store(head, place, Relaxed);
        self.available = self.available.wrapping_add(1);
        self.set_available(self.available);
    }

    /// Says that the available ring ends here.
    pub fn set_available(&mut self, index: u16) {
        let _ = self.memory.store(index, self.at(AVAILABLE + 2), Release);
        fence(SeqCst);
    }

    /// The next answer, if there is one. Of a request that this ring did not make, or that was answered before, its slot alone.
    pub fn take(&mut self) -> Option<Done> {
        if self.used == self.used_index() {
            return None;
        }
        let place = self.at(USED + 4 + 8 * u64::from(self.used % QUEUE));
        let head: u32 = self.memory.load(place, Relaxed).unwrap_or_default();
        self.used = self.used.wrapping_add(1);
        // The next one wakes us again.
        let _ = self.memory.store(self.used, self.at(AVAILABLE + 4 + 2 * u64::from(QUEUE)), SeqCst);
        Some(self.answer((head / 4) as u16))
    }

    /// The answer of a request, of whose backend it is known otherwise that it has answered it.
    pub fn answer(&mut self, slot: u16) -> Done {
        let op = self.pending.get_mut(usize::from(slot)).and_then(Option::take);
        let mut status = [255];
        let _ = self.memory.read_slice(&mut status, self.at(HEADS + HEAD * u64::from(slot) + 32));
        let mut data = match op {
            Some(Op::Read(_, len)) => vec![0; len],
            Some(Op::Id) => vec![0; 20],
            _ => Vec::new(),
        };
        let _ = self.memory.read_slice(&mut data, self.at(DATA + SLOT_BYTES as u64 * u64::from(slot)));
        Done { slot, status: status[0], data }
    }

    /// How many answers were taken, as the used ring counts.
    pub fn taken(&self) -> u16 {
        self.used
    }

    /// True if the backend wants to hear of what was offered since the available ring ended at `before`.
    pub fn wants_kick(&self, before: u16) -> bool {
        fence(SeqCst);
        let event: u16 =
            self.memory.load(self.at(USED + 4 + 8 * u64::from(QUEUE)), SeqCst).unwrap_or_default();
        let (now, since) = (self.available, self.available.wrapping_sub(before));
        now.wrapping_sub(event).wrapping_sub(1) < since
    }

    /// Where the available ring ends.
    pub fn end(&self) -> u16 {
        self.available
    }

    fn store(&self, bytes: &[u8], at: GuestAddress) {
        let _ = self.memory.write_slice(bytes, at);
    }
}
