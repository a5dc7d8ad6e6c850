//! A batch: pieces of the image that become durable together, written by one device write.
//!
//! ```text
//! header, one line │ data, whole lines │ table of extents, padded to a line │ zeros up to the block
//! ```
//!
//! A batch is valid if the header's checksum, its place, its pool and the checksum over data and table all say
//! so; it counts if it also names the last one that counts as its predecessor (see `read`).

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::{LINE, Region, Striped, crc32c};

const MAGIC: u32 = u32::from_le_bytes(*b"SWbt");

/// The first line of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BatchHeader {
    magic: u32,
    /// Entries of the table.
    pub extents: u32,
    /// Grows with every attempt to write a batch, for the pool's life.
    pub number: u64,
    /// The last batch that had been reported durable when this one was begun.
    pub previous: u64,
    /// Where it lies in the journal: defeats a misdirected write.
    pub position: u64,
    /// Low half of the pool's UUID: defeats a batch of another pool.
    pub pool: u64,
    /// Bytes of data: whole lines.
    pub data: u32,
    reserved: u32,
    reserved_too: u64,
    /// Striped CRC-32C of data and table.
    pub payload: u32,
    /// CRC-32C of all bytes before it.
    checksum: u32,
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<BatchHeader>() == LINE && offset_of!(BatchHeader, number) == 8);
    assert!(offset_of!(BatchHeader, previous) == 16 && offset_of!(BatchHeader, position) == 24);
    assert!(offset_of!(BatchHeader, pool) == 32 && offset_of!(BatchHeader, data) == 40);
    assert!(offset_of!(BatchHeader, payload) == 56 && offset_of!(BatchHeader, checksum) == 60);
};

/// One entry of the table: where in the image the next `len` bytes of data belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Extent {
    /// Offset in the image: whole lines.
    pub offset: u64,
    /// Bytes: whole lines.
    pub len: u32,
    reserved: u32,
}

/// Bytes of an [`Extent`].
pub const EXTENT_BYTES: usize = 16;
const _: () = assert!(size_of::<Extent>() == EXTENT_BYTES);

impl BatchHeader {
    /// The highest number that a batch can have: writers keep it in a word with other things.
    pub const LAST_NUMBER: u64 = (1 << 48) - 1;

    /// Bytes of header, data and table.
    pub fn len(&self) -> u64 {
        LINE as u64 + self.body()
    }

    /// Never: a batch has a header.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Bytes of data and table.
    pub fn body(&self) -> u64 {
        u64::from(self.data) + table_bytes(self.extents) as u64
    }

    /// The header at `position`, or `None` if there is no valid one of this pool.
    pub fn parse(line: &[u8], position: u64, pool: u64) -> Option<Self> {
        Self::of(line, pool).filter(|h| h.position == position)
    }

    /// The same, wherever it lies in the journal.
    pub fn of(line: &[u8], pool: u64) -> Option<Self> {
        let (h, _) = Self::read_from_prefix(line).ok()?;
        let valid = h.magic == MAGIC && h.pool == pool && h.checksum == h.sum();
        let numbers = h.previous < h.number && h.number <= Self::LAST_NUMBER;
        (valid && numbers && (h.data as usize).is_multiple_of(LINE)).then_some(h)
    }

    /// The extents and their data, or `None` if the body is not the header's or reaches beyond the image.
    pub fn extents<'b>(
        &self,
        body: &'b [u8],
        image: u64,
    ) -> Option<impl Iterator<Item = (u64, &'b [u8])> + use<'b>> {
        let mut sum = Striped::new();
        sum.update(body);
        if body.len() as u64 != self.body() || sum.finish() != self.payload {
            return None;
        }
        let (data, table) = body.split_at(self.data as usize);
        let table = table.get(..self.extents as usize * EXTENT_BYTES)?;
        let entries = || table.chunks_exact(EXTENT_BYTES).filter_map(|e| Extent::read_from_bytes(e).ok());
        let inside = |e: &Extent| {
            let end = e.offset.checked_add(u64::from(e.len));
            let lines = e.offset.is_multiple_of(LINE as u64) && (e.len as usize).is_multiple_of(LINE);
            lines && end.is_some_and(|end| end <= image)
        };
        let fits = entries().map(|e| e.len as usize).sum::<usize>() == data.len();
        let valid = fits && entries().all(|e| inside(&e));
        valid.then(|| {
            let mut at = 0;
            entries().map(move |e| {
                let from = at;
                at += e.len as usize;
                (e.offset, &data[from..at])
            })
        })
    }

    fn sum(&self) -> u32 {
        crc32c(&self.as_bytes()[..LINE - 4])
    }
}

/// Bytes of a table with padding. Saturates: a header that was read may say anything.
const fn table_bytes(extents: u32) -> usize {
    (extents as usize).saturating_mul(EXTENT_BYTES).next_multiple_of(LINE)
}

/// A batch in the making: in a stretch of memory that one thread has to itself.
pub struct Draft<'a> {
    memory: &'a Region,
    buffer: usize,
    table: usize,
    capacity: usize,
    extents_max: u32,
    data: usize,
    extents: u32,
    last: Extent,
}

impl<'a> Draft<'a> {
    /// An empty batch. `buffer` has `capacity` bytes, `table` room for `extents_max` entries, both in `memory`,
    /// which is the image with that room behind it.
    pub fn begin(
        memory: &'a Region,
        (buffer, capacity): (usize, usize),
        (table, extents_max): (usize, u32),
    ) -> Self {
        let last = Extent { offset: 0, len: 0, reserved: 0 };
        Self { memory, buffer, table, capacity, extents_max, data: 0, extents: 0, last }
    }

    /// True if nothing was taken yet.
    pub fn is_empty(&self) -> bool {
        self.extents == 0
    }

    /// Bytes of the image it holds.
    pub fn data(&self) -> usize {
        self.data
    }

    /// Bytes of the image that one more extent may have.
    pub fn room(&self) -> usize {
        let used = LINE + self.data + table_bytes(self.extents + 1);
        if self.extents == self.extents_max { 0 } else { self.capacity.saturating_sub(used) / LINE * LINE }
    }

    /// Copies lines of the image, as they are now. False: there is no room.
    ///
    /// # Panics
    /// If the range is not whole lines.
    pub fn take(&mut self, offset: usize, len: usize) -> bool {
        assert!(offset.is_multiple_of(LINE) && len.is_multiple_of(LINE), "{len} bytes at {offset}");
        if len > self.room() {
            return false;
        }
        self.memory.copy_within(offset, self.buffer + LINE + self.data, len);
        self.data += len;
        if self.extents > 0 && self.last.offset + u64::from(self.last.len) == offset as u64 {
            self.last.len += len as u32;
        } else {
            self.last = Extent { offset: offset as u64, len: len as u32, reserved: 0 };
            self.extents += 1;
        }
        let entry = self.table + (self.extents as usize - 1) * EXTENT_BYTES;
        self.memory.copy_in(entry, self.last.as_bytes());
        true
    }

    /// Bytes it will have on the device, in blocks of `block`.
    pub fn size(&self, block: u32) -> usize {
        (LINE + self.data + table_bytes(self.extents)).next_multiple_of(block as usize)
    }

    /// Finishes it; from now on `buffer` holds what is to be written, [`size`](Self::size) bytes.
    pub fn seal(self, number: u64, previous: u64, position: u64, pool: u64, block: u32) -> usize {
        let size = self.size(block);
        let end = self.buffer + LINE + self.data;
        let entries = self.extents as usize * EXTENT_BYTES;
        self.memory.copy_within(self.table, end, entries);
        self.memory.zero(end + entries, self.buffer + size - end - entries);
        let mut h = BatchHeader::new_zeroed();
        (h.magic, h.extents, h.data) = (MAGIC, self.extents, self.data as u32);
        (h.number, h.previous, h.position, h.pool) = (number, previous, position, pool);
        h.payload = self.memory.striped(self.buffer + LINE, h.body() as usize);
        h.checksum = h.sum();
        self.memory.copy_in(self.buffer, h.as_bytes());
        size
    }
}
