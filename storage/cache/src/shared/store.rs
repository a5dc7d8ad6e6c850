//! What lies on the disk of a cache whose blocks are there, besides them: whose it is, and the index as it was when the
//! cache was closed.
//!
//! ```text
//! header, 4096 bytes │ saved index │ blocks
//! ```
//!
//! While the cache is in use its index is in memory, and nothing of it on the disk is believed: `is_saved` says so. It is
//! taken back, durably, before anything is served, and set, durably, when all that it vouches for is on the disk.

use seawall_media::{assert_layout, crc32c};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::format::FORMAT_VERSION;
use super::{Cache, Layout};

const MAGIC: [u8; 8] = *b"SWSTORE\x01";

/// The first bytes on the disk; zeros follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StoreHeader {
    magic: [u8; 8],
    /// The zone's format version.
    pub version: u32,
    /// 1: the cache was closed, and the saved index is its index. 0: it is in use, or was when the machine stopped.
    pub is_saved: u32,
    /// The zone's identity.
    pub uuid: [u8; 16],
    /// Bytes of the cache.
    pub bytes: u64,
    /// CRC-32C of all bytes before it.
    checksum: u32,
    reserved: u32,
}

assert_layout!(StoreHeader, 48, {
    magic @ 0, version @ 8, is_saved @ 12, uuid @ 16, bytes @ 32, checksum @ 40, reserved @ 44,
});

impl StoreHeader {
    /// Bytes kept for it.
    pub const BYTES: usize = Layout::SAVED_AT as usize;

    /// The header of a new cache.
    pub fn new(uuid: [u8; 16], bytes: u64) -> Self {
        let mut header = Self::new_zeroed();
        (header.magic, header.version, header.uuid, header.bytes) = (MAGIC, FORMAT_VERSION, uuid, bytes);
        header.sealed()
    }

    /// The same with the index saved, or not.
    #[must_use]
    pub fn saved(self, is_saved: bool) -> Self {
        Self { is_saved: u32::from(is_saved), ..self }.sealed()
    }

    /// True if it begins like one of ours, whatever its version.
    pub fn is_ours(&self) -> bool {
        self.magic == MAGIC
    }

    /// True if it is one of this version, and no bit of it changed.
    pub fn is_whole(&self) -> bool {
        self.version == FORMAT_VERSION && self.checksum == self.sum()
    }

    fn sealed(mut self) -> Self {
        self.checksum = self.sum();
        self
    }

    fn sum(&self) -> u32 {
        crc32c(&self.as_bytes()[..core::mem::offset_of!(Self, checksum)])
    }
}

impl Cache {
    /// Copies a part of the index out, to be saved: of a cache that was [closed](Self::close).
    ///
    /// # Panics
    /// If the part is not inside the index.
    pub fn read_index(&self, at: usize, into: &mut [u8]) {
        assert!(at + into.len() <= self.layout.index_bytes(), "{} bytes at {at}", into.len());
        self.region.read(at, into);
    }

    /// The zone's identity.
    pub fn uuid(&self) -> [u8; 16] {
        let mut uuid = [0; 16];
        self.region.read(core::mem::offset_of!(super::Header, uuid), &mut uuid);
        uuid
    }
}
