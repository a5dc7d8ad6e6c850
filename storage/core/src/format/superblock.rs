//! The superblock: what this pool is. Two copies; the valid one with the higher sequence counts.

use seawall_media::{Region, assert_layout, crc32c, fence};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Layout;

/// Version of the format. Pools of another version are refused, never converted silently.
pub const FORMAT_VERSION: u32 = 1;
/// Version of a pool with a spill area: a program that does not know such areas would miss a part of the log.
pub const SPILL_VERSION: u32 = 2;
/// Version of a pool whose log may hold changes of names: a program that does not know them would mistake the first one
/// for the end of its segment.
pub const NAMES_VERSION: u32 = 3;

const MAGIC: [u8; 8] = *b"SEAWALL\x01";

/// The superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Superblock {
    magic: [u8; 8],
    /// [`FORMAT_VERSION`], [`SPILL_VERSION`] or [`NAMES_VERSION`].
    pub version: u32,
    /// Entries of the file table.
    pub files: u32,
    /// Identity of the pool; it is in every segment header, so that a foreign segment is not believed.
    pub uuid: [u8; 16],
    /// Bytes that the pool was made with: defeats truncation.
    pub size: u64,
    /// Bytes of one segment.
    pub segment_bytes: u32,
    /// Segments.
    pub segments: u32,
    /// Counts writes of the superblock; the higher valid copy counts.
    pub sequence: u64,
    /// Boot id (Linux's random/boot_id) of the last daemon: tells a crash of the machine from a crash of the daemon.
    pub boot: [u8; 16],
    /// Machine id of the host: defeats a pool that was moved to another host's files.
    pub host: [u8; 16],
    /// What is special about the pool's memory: [`Superblock::EMULATED`], [`Superblock::JOURNALED`],
    /// [`Superblock::SPILLS`], [`Superblock::NAMES`].
    pub flags: u32,
    /// Numeric id of the user the pool belongs to.
    pub owner: u32,
    /// CRC-32C of all bytes before it.
    checksum: u32,
    /// For a log that other hosts keep: the turn since which it holds everything that its files may lack. The hosts'
    /// copies have checksums of their own.
    pub complete_since: u32,
}

assert_layout!(Superblock, 104, {
    magic @ 0, version @ 8, files @ 12, uuid @ 16, size @ 32, segment_bytes @ 40, segments @ 44,
    sequence @ 48, boot @ 56, host @ 72, flags @ 88, owner @ 92, checksum @ 96, complete_since @ 100,
});

/// Why no superblock could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuperblockError {
    /// Neither copy begins like a pool.
    NotAPool,
    /// A pool of another format version.
    Version(u32),
    /// Both copies are damaged.
    Damaged,
    /// Its numbers contradict each other or the file's length.
    Geometry {
        /// Bytes the superblock asks for.
        expected: u64,
        /// Bytes there are.
        found: u64,
    },
}

impl Superblock {
    /// It was made, on request, on memory that does not survive power loss.
    pub const EMULATED: u32 = 1;
    /// Its memory is an image of a journal's content: a process that does not write that journal makes nothing durable.
    pub const JOURNALED: u32 = 2;

    /// It has a spill area: full segments may have been copied there.
    pub const SPILLS: u32 = 4;

    /// Its log may hold changes of names.
    pub const NAMES: u32 = 8;

    /// A first superblock, with these flags.
    pub fn new(layout: Layout, size: u64, uuid: [u8; 16], host: [u8; 16], flags: u32, owner: u32) -> Self {
        Self {
            magic: MAGIC,
            version: version(flags),
            files: layout.files,
            uuid,
            size,
            segment_bytes: layout.segment_bytes,
            segments: layout.segments,
            sequence: 1,
            boot: [0; 16],
            host,
            flags,
            owner,
            checksum: 0,
            complete_since: 0,
        }
    }

    /// Its log may hold changes of names from now on.
    pub fn expect_names(&mut self) {
        self.flags |= Self::NAMES;
        self.version = version(self.flags);
    }

    /// Where everything lies.
    pub fn layout(&self) -> Layout {
        Layout { files: self.files, segment_bytes: self.segment_bytes, segments: self.segments }
    }

    /// True if it was made on memory that does not survive power loss.
    pub fn is_emulated(&self) -> bool {
        self.flags & Self::EMULATED != 0
    }

    /// True for the image of a pool whose durability is a journal.
    pub fn is_journaled(&self) -> bool {
        self.flags & Self::JOURNALED != 0
    }

    /// True for a pool with a spill area.
    pub fn spills(&self) -> bool {
        self.flags & Self::SPILLS != 0
    }

    /// The half of the UUID that segment headers carry.
    pub fn uuid_low(&self) -> u64 {
        u128::from_le_bytes(self.uuid) as u64
    }

    /// Writes the next version over the older copy, once the newer copy is persisted: its writer may have been killed
    /// before it was.
    ///
    /// Does not wait: a crash leaves this version or the one before. They differ in the boot they name, and after a
    /// crash neither is the boot that recovers.
    pub fn write(&mut self, region: &Region) {
        region.flush(Layout::superblock((self.sequence % 2) as usize), size_of::<Self>());
        fence();
        self.sequence += 1;
        self.checksum = self.sum();
        region.store(Layout::superblock((self.sequence % 2) as usize), self.as_bytes());
    }

    /// Reads the newer valid copy.
    ///
    /// # Errors
    /// [`SuperblockError`]. One damaged copy is an update that a crash interrupted, not an error.
    pub fn read(region: &Region) -> Result<Self, SuperblockError> {
        let found = [Self::copy(region, 0), Self::copy(region, 1)];
        let newest = found.iter().filter_map(|copy| copy.ok()).max_by_key(|sb| sb.sequence);
        let sb = newest.ok_or_else(|| Self::why(found))?;
        if !sb.fits_its_size() || sb.size > region.len() as u64 {
            return Err(SuperblockError::Geometry { expected: sb.size, found: region.len() as u64 });
        }
        Ok(sb)
    }

    /// A pool's layout follows from its size, except for the segments that give way to the tables of a spill area.
    fn fits_its_size(&self) -> bool {
        let Some(whole) = Layout::for_size(self.size) else { return false };
        let most = if self.spills() { whole.segments / 4 } else { 0 };
        let taken = whole.segments.checked_sub(self.segments);
        taken.is_some_and(|taken| taken <= most)
            && whole == Layout { segments: whole.segments, ..self.layout() }
    }

    fn why(found: [Result<Self, SuperblockError>; 2]) -> SuperblockError {
        let [a, b] = found.map(|copy| copy.err().unwrap_or(SuperblockError::Damaged));
        if a == SuperblockError::NotAPool { b } else { a }
    }

    fn copy(region: &Region, i: usize) -> Result<Self, SuperblockError> {
        let mut sb = Self::new_zeroed_copy();
        region.read(Layout::superblock(i), sb.as_mut_bytes());
        match sb {
            sb if sb.magic != MAGIC => Err(SuperblockError::NotAPool),
            sb if sb.checksum != sb.sum() => Err(SuperblockError::Damaged),
            sb if sb.version != version(sb.flags) => Err(SuperblockError::Version(sb.version)),
            sb => Ok(sb),
        }
    }

    fn new_zeroed_copy() -> Self {
        use zerocopy::FromZeros;
        Self::new_zeroed()
    }

    fn sum(&self) -> u32 {
        crc32c(&self.as_bytes()[..core::mem::offset_of!(Self, checksum)])
    }
}

/// The version of a pool with these flags.
fn version(flags: u32) -> u32 {
    match () {
        () if flags & Superblock::NAMES != 0 => NAMES_VERSION,
        () if flags & Superblock::SPILLS != 0 => SPILL_VERSION,
        () => FORMAT_VERSION,
    }
}
