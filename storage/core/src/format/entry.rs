//! A managed file on the medium: its identity, where it was seen, and how far it is on disk.
//!
//! ```text
//! 0    state word (generation, used, check)      written last, 8 bytes, never torn
//! 64   watermark cell                             raised under the file's lock
//! 128  descriptor                                 written while the state says unused
//! ```

use seawall_media::{Region, assert_layout, crc32c, fence};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::{Cell, FILE_ENTRY_BYTES, Layout};

const WATERMARK_AT: usize = 64;
const DESCRIPTOR_AT: usize = 128;
/// Longest path hint, relative to the root.
pub const FILE_PATH_MAX: usize = 256;

/// The state word of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryState {
    /// Counts uses of the slot; records carry it, so records of a former file are never replayed.
    pub generation: u32,
    /// A file is registered.
    pub used: bool,
}

impl EntryState {
    /// Reads entry `slot`'s state, or `None` if the word is damaged.
    pub fn read(region: &Region, slot: u32) -> Option<Self> {
        let mut bytes = [0; 8];
        region.read(Layout::file(slot), &mut bytes);
        let word = u64::from_le_bytes(bytes);
        let state = Self { generation: word as u32, used: word >> 32 & 1 == 1 };
        (word == 0 || state.word(slot) == word).then_some(state)
    }

    /// Writes the state and waits until it is persisted.
    pub fn write(self, region: &Region, slot: u32) {
        region.set_u64(Layout::file(slot), self.word(slot));
        fence();
    }

    fn word(self, slot: u32) -> u64 {
        let low = u64::from(self.generation) | u64::from(self.used) << 32;
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&low.to_le_bytes());
        seed[8..12].copy_from_slice(&slot.to_le_bytes());
        low | u64::from(crc32c(&seed) >> 8) << 40
    }
}

/// The identity of a managed file.
#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Descriptor {
    /// Index of its root.
    pub root: u32,
    /// Handle type.
    pub handle_kind: i32,
    handle_len: u32,
    path_len: u32,
    /// File system UUID.
    pub fs: [u8; 16],
    handle: [u8; 64],
    path: [u8; FILE_PATH_MAX],
    /// 1 for a directory, whose records are changes of names in it.
    is_directory: u32,
    /// CRC-32C of all bytes before it.
    checksum: u32,
}

assert_layout!(Descriptor, 360, {
    root @ 0, handle_kind @ 4, handle_len @ 8, path_len @ 12, fs @ 16, handle @ 32, path @ 96,
    is_directory @ 352, checksum @ 356,
});
const _: () = assert!(DESCRIPTOR_AT + size_of::<Descriptor>() <= FILE_ENTRY_BYTES);

impl Descriptor {
    /// A descriptor. A path that is too long is dropped (it is only a hint). `None`: the handle is too long.
    pub fn new(root: u32, fs: [u8; 16], kind: i32, handle: &[u8], path: &[u8]) -> Option<Self> {
        let mut d = Self::new_zeroed();
        (d.root, d.fs, d.handle_kind) = (root, fs, kind);
        d.handle.get_mut(..handle.len())?.copy_from_slice(handle);
        d.handle_len = handle.len() as u32;
        if let Some(room) = d.path.get_mut(..path.len()) {
            room.copy_from_slice(path);
            d.path_len = path.len() as u32;
        }
        d.checksum = d.sum();
        Some(d)
    }

    /// Makes it a directory's descriptor.
    #[must_use]
    pub fn of_directory(mut self) -> Self {
        self.is_directory = 1;
        self.checksum = self.sum();
        self
    }

    /// True for a directory.
    pub fn is_directory(&self) -> bool {
        self.is_directory == 1
    }

    /// The handle.
    pub fn handle(&self) -> &[u8] {
        &self.handle[..(self.handle_len as usize).min(64)]
    }

    /// The path hint, relative to the root.
    pub fn path(&self) -> &[u8] {
        &self.path[..(self.path_len as usize).min(FILE_PATH_MAX)]
    }

    /// Stores the descriptor of an unused entry; persisted after the next fence.
    pub fn store(&self, region: &Region, slot: u32) {
        region.store(Layout::file(slot) + DESCRIPTOR_AT, self.as_bytes());
    }

    /// Reads entry `slot`'s descriptor, or `None` if it is damaged.
    pub fn read(region: &Region, slot: u32) -> Option<Self> {
        let mut d = Self::new_zeroed();
        region.read(Layout::file(slot) + DESCRIPTOR_AT, d.as_mut_bytes());
        (d.checksum == d.sum()).then_some(d)
    }

    fn sum(&self) -> u32 {
        crc32c(&self.as_bytes()[..core::mem::offset_of!(Self, checksum)])
    }
}

/// A watermark above every record: nothing that the log holds of the file, now or later, counts.
pub const FOREVER: u64 = 1 << 62;

/// The watermark of file `slot`: all its records at or below it are on disk.
#[inline]
pub fn watermark(slot: u32) -> Cell {
    Cell::at(Layout::file(slot) + WATERMARK_AT)
}
