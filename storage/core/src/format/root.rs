//! A registered directory on the medium: recovery writes nowhere else.

use seawall_media::{Region, assert_layout, crc32c, fence};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::{Layout, ROOT_ENTRY_BYTES};

/// Bytes that are never torn.
const UNIT: usize = 8;
const MAGIC: u32 = u32::from_le_bytes(*b"SWrt");
/// Longest path of a root, as in the run-time memory.
pub const PATH_MAX: usize = seawall_wire::shm::ROOT_PATH_MAX;

/// One entry of the roots' zone. Written before any file below it is registered, and as a whole.
#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RootDescriptor {
    magic: u32,
    /// Number of the preset.
    pub preset: u32,
    /// Owner of the directory at registration: recovery writes only as that user, or to that user's files.
    pub uid: u32,
    path_len: u32,
    data_len: u32,
    /// Handle type of the directory.
    pub handle_kind: i32,
    handle_len: u32,
    /// Number of the policy. 0, which is also what pools from before policies have, is `tail`.
    pub policy: u32,
    /// File system UUID of the directory.
    pub fs: [u8; 16],
    handle: [u8; 64],
    path: [u8; PATH_MAX],
    data: [u8; PATH_MAX],
    padding: [u8; ROOT_ENTRY_BYTES - 112 - 2 * PATH_MAX - 8],
    reserved_end: u32,
    /// CRC-32C of all bytes before it.
    checksum: u32,
}

assert_layout!(RootDescriptor, ROOT_ENTRY_BYTES, {
    magic @ 0, preset @ 4, uid @ 8, path_len @ 12, data_len @ 16, handle_kind @ 20, handle_len @ 24,
    policy @ 28, fs @ 32, handle @ 48, path @ 112, data @ 112 + PATH_MAX,
    checksum @ ROOT_ENTRY_BYTES - 4,
});

/// What an entry of the roots' zone holds.
#[allow(clippy::large_enum_variant)] // Read at start and by tools only, and core does not allocate.
pub enum RootSlot {
    /// Never written, or not completely.
    Unused,
    /// A root.
    Used(RootDescriptor),
    /// The checksum does not match.
    Damaged,
}

impl RootDescriptor {
    /// A root. `None` if a path or the handle is too long.
    pub fn new(
        preset: u32,
        uid: u32,
        fs: [u8; 16],
        handle: (i32, &[u8]),
        path: &[u8],
        data: &[u8],
    ) -> Option<Self> {
        let mut root = Self::new_zeroed();
        root.magic = MAGIC;
        (root.preset, root.uid, root.fs, root.handle_kind) = (preset, uid, fs, handle.0);
        root.path.get_mut(..path.len())?.copy_from_slice(path);
        root.data.get_mut(..data.len())?.copy_from_slice(data);
        root.handle.get_mut(..handle.1.len())?.copy_from_slice(handle.1);
        root.path_len = path.len() as u32;
        root.data_len = data.len() as u32;
        root.handle_len = handle.1.len() as u32;
        Some(root)
    }

    /// The real path at registration.
    pub fn path(&self) -> &[u8] {
        &self.path[..(self.path_len as usize).min(PATH_MAX)]
    }

    /// The database's directory, where its guard stands.
    pub fn data(&self) -> &[u8] {
        &self.data[..(self.data_len as usize).min(PATH_MAX)]
    }

    /// The directory's handle.
    pub fn handle(&self) -> &[u8] {
        &self.handle[..(self.handle_len as usize).min(64)]
    }

    /// Writes the unused entry `i` and waits until it is persisted. Its first unit, which marks it as used, is written
    /// last: a crash before that leaves an unused entry, not a damaged one.
    pub fn write(&mut self, region: &Region, i: u32) {
        self.checksum = self.sum();
        let (first, rest) = self.as_bytes().split_at(UNIT);
        region.store(Layout::root(i) + UNIT, rest);
        fence();
        region.store(Layout::root(i), first);
        fence();
    }

    /// Makes the used entry `i` an unused one, and waits until that is persisted: one unit, never torn.
    pub fn erase(region: &Region, i: u32) {
        region.store(Layout::root(i), &[0; UNIT]);
        fence();
    }

    /// Reads entry `i`.
    pub fn read(region: &Region, i: u32) -> RootSlot {
        let mut root = Self::new_zeroed();
        region.read(Layout::root(i), root.as_mut_bytes());
        match root {
            root if root.magic == MAGIC && root.checksum == root.sum() => RootSlot::Used(root),
            root if root.as_bytes()[..UNIT] == [0; UNIT] => RootSlot::Unused,
            _ => RootSlot::Damaged,
        }
    }

    fn sum(&self) -> u32 {
        crc32c(&self.as_bytes()[..core::mem::offset_of!(Self, checksum)])
    }
}
