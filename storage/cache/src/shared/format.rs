//! The zone's format: what is found again after a restart. `docs/internals/CACHE.md` draws it.
//!
//! Integers are little-endian. Offsets and sizes are asserted at compile time, and nothing has padding.

use seawall_media::{assert_layout, crc32c};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Layout;

#[cfg(target_endian = "big")]
compile_error!("the cache's format is little-endian");

/// Version of the format. A zone of another one is made anew: nothing is lost by that but time.
pub const FORMAT_VERSION: u32 = 5;

const MAGIC: [u8; 8] = *b"SWCACHE\x01";

/// What this zone is: written once, when it is made. Behind it lie words that change ([`state`](super::state)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    magic: [u8; 8],
    /// [`FORMAT_VERSION`].
    pub version: u32,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Identity of the zone.
    pub uuid: [u8; 16],
    /// Sets.
    pub sets: u32,
    /// Files.
    pub files: u32,
    /// Operations.
    pub operations: u32,
    /// 1: stores survive power loss.
    pub flags: u32,
    /// Places for blocks on their way to a disk; 0: the blocks lie in the zone itself.
    pub staged: u32,
    /// CRC-32C of all bytes before it.
    checksum: u32,
}

assert_layout!(Header, 56, {
    magic @ 0, version @ 8, block_bytes @ 12, uuid @ 16, sets @ 32, files @ 36, operations @ 40, flags @ 44,
    staged @ 48, checksum @ 52,
});

impl Header {
    /// Bytes kept for it and the words behind it.
    pub const BYTES: usize = 4096;
    const DURABLE: u32 = 1;

    /// The header of a new zone.
    pub fn new(layout: Layout, uuid: [u8; 16], is_durable: bool) -> Self {
        let mut header = Self {
            magic: MAGIC,
            version: FORMAT_VERSION,
            block_bytes: layout.block_bytes,
            uuid,
            sets: layout.sets,
            files: layout.files,
            operations: layout.operations,
            flags: if is_durable { Self::DURABLE } else { 0 },
            staged: layout.staged,
            checksum: 0,
        };
        header.checksum = header.sum();
        header
    }

    /// Where everything lies.
    pub fn layout(&self) -> Layout {
        Layout {
            block_bytes: self.block_bytes,
            sets: self.sets,
            files: self.files,
            operations: self.operations,
            staged: self.staged,
        }
    }

    /// True if stores to the zone survive power loss.
    pub fn is_durable(&self) -> bool {
        self.flags & Self::DURABLE != 0
    }

    /// True if it begins like one of ours, whatever its version.
    pub fn is_ours(&self) -> bool {
        self.magic == MAGIC
    }

    /// True if no bit of it changed.
    pub fn is_whole(&self) -> bool {
        self.checksum == self.sum()
    }

    fn sum(&self) -> u32 {
        crc32c(&self.as_bytes()[..core::mem::offset_of!(Self, checksum)])
    }
}

/// Which file it is, and its size and times when that was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Identity {
    /// UUID of the file system.
    pub fs: [u8; 16],
    /// Its inode.
    pub inode: u64,
    /// Tells it from a later file with the same inode.
    pub generation: u64,
    /// Bytes.
    pub size: u64,
    /// Last change of its content, nanoseconds since the epoch.
    pub mtime_ns: i64,
    /// Last change of its content or attributes.
    pub ctime_ns: i64,
}

/// A file's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FileRecord {
    /// Its [word](super::word::FileWord): changed in place.
    pub word: u64,
    /// Syncs of it that began: changed in place.
    pub begun: u32,
    /// The newest of these that ended well, made durable: changed in place.
    pub done: u32,
    /// Which file it is.
    pub identity: Identity,
    /// When that was noted, nanoseconds since the epoch.
    pub noted_ns: i64,
    /// CRC-32C of `identity` and `noted_ns`.
    checksum: u32,
    /// Of `word` and `done`: a bit that flips in them must not bring an older incarnation back.
    seal: u32,
    /// The device it was on when it was entered, as fstat(2) says; 0 if it was not since the zone was opened.
    pub dev: u64,
    /// What the database uses it for, as a number; meaningless after a restart.
    pub class: u32,
    /// What is to be done with its blocks ([`Policy`](crate::set::Policy)), as a number; meaningless after a restart.
    pub policy: u32,
    /// Blocks of it that were hits, [about](super::count): changed in place, meaningless after a restart.
    pub hits: u64,
    /// Reads of it that went to the disk, as above.
    pub misses: u64,
    reserved: [u32; 2],
}

assert_layout!(FileRecord, 128, {
    word @ 0, begun @ 8, done @ 12, identity @ 16, noted_ns @ 72, checksum @ 80, seal @ 84, dev @ 88,
    class @ 96, policy @ 100, hits @ 104, misses @ 112, reserved @ 120,
});

/// How long a file must have been left alone before its times say that it was: the kernel's clock for them is
/// coarse, ten milliseconds at most, and two changes within one of its ticks look like one.
const SETTLED_NS: i64 = 50_000_000;

impl FileRecord {
    /// Bytes it occupies.
    pub const BYTES: usize = size_of::<Self>();
    /// Where the identity begins.
    pub(super) const IDENTITY: usize = core::mem::offset_of!(Self, identity);
    /// Where its inode is.
    pub(super) const INODE: usize = Self::IDENTITY + core::mem::offset_of!(Identity, inode);
    /// Where its device is.
    pub(super) const DEV: usize = core::mem::offset_of!(Self, dev);
    /// Where its class is.
    pub(super) const CLASS: usize = core::mem::offset_of!(Self, class);
    /// Where its hits are.
    pub(super) const HITS: usize = core::mem::offset_of!(Self, hits);
    /// Where its misses are.
    pub(super) const MISSES: usize = core::mem::offset_of!(Self, misses);
    /// Where its policy is.
    pub(super) const POLICY: usize = core::mem::offset_of!(Self, policy);
    /// Where the number of the newest sync is.
    pub(super) const DONE: usize = core::mem::offset_of!(Self, done);
    /// Where the seal is.
    pub(super) const SEAL: usize = core::mem::offset_of!(Self, seal);

    /// The part of the record that says which file it is, as it was at `noted_ns`.
    #[cfg(feature = "std")]
    pub(super) fn noting(identity: Identity, noted_ns: i64) -> Self {
        let mut record = Self { identity, noted_ns, ..Self::nobody() };
        record.checksum = record.sum();
        record
    }

    /// True if word and newest sync are what they were when they were sealed. They are not for a moment while they
    /// change, and a crash in that moment makes the file a cold one.
    #[cfg(feature = "std")]
    pub(super) fn is_sealed(&self) -> bool {
        self.seal == Self::seal(self.word, self.done)
    }

    /// The seal of these two.
    pub(super) fn seal(word: u64, done: u32) -> u32 {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&word.to_le_bytes());
        bytes[8..].copy_from_slice(&done.to_le_bytes());
        crc32c(&bytes)
    }

    /// A record that knows nobody.
    #[cfg(feature = "std")]
    pub(super) fn nobody() -> Self {
        use zerocopy::FromZeros;
        Self::new_zeroed()
    }

    /// True if no bit of its identity changed.
    pub fn is_whole(&self) -> bool {
        self.checksum == self.sum()
    }

    /// The bytes of it that are written when it is noted.
    #[cfg(feature = "std")]
    pub(super) fn identity_bytes(&self) -> &[u8] {
        &self.as_bytes()[Self::IDENTITY..Self::SEAL]
    }

    /// True if `now` is the same file.
    pub fn is(&self, now: &Identity) -> bool {
        let then = &self.identity;
        self.is_whole() && (then.fs, then.inode, then.generation) == (now.fs, now.inode, now.generation)
    }

    /// True if `now` is the same file and nobody changed it since it was noted. One that had been changed just
    /// before it was noted counts as changed: its times could not show another change.
    pub fn is_unchanged(&self, now: &Identity) -> bool {
        let last = self.identity.mtime_ns.max(self.identity.ctime_ns);
        self.is(now) && self.identity == *now && self.noted_ns.saturating_sub(last) >= SETTLED_NS
    }

    fn sum(&self) -> u32 {
        crc32c(&self.as_bytes()[Self::IDENTITY..core::mem::offset_of!(Self, checksum)])
    }
}

/// Bytes of a cell of the files that are not entered.
pub const CELL_BYTES: usize = 8;

/// Bytes of an operation: owner, kind, and two numbers; a line of its own.
pub const OPERATION_BYTES: usize = 64;

/// Bytes of the samples, a circular buffer: a line for its cursor, and the entries.
pub const SAMPLE_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Identity =
        Identity { fs: [1; 16], inode: 2, generation: 3, size: 4, mtime_ns: 5, ctime_ns: 6 };

    #[test]
    fn a_file_is_unchanged_only_if_everything_is_the_same_and_it_was_left_alone() {
        let noted = FileRecord::noting(NOW, 6 + SETTLED_NS);
        assert!(noted.is_unchanged(&NOW));
        for other in [
            Identity { size: 9, ..NOW },
            Identity { mtime_ns: 9, ..NOW },
            Identity { ctime_ns: 9, ..NOW },
            Identity { generation: 9, ..NOW },
            Identity { inode: 9, ..NOW },
            Identity { fs: [9; 16], ..NOW },
        ] {
            assert!(!noted.is_unchanged(&other), "{other:?}");
        }
        assert!(!FileRecord::noting(NOW, 5 + SETTLED_NS).is_unchanged(&NOW));
        assert!(!FileRecord::nobody().is_unchanged(&NOW));
    }
}
