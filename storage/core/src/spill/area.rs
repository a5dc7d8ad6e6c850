//! The area itself: making, opening, checking, reading it.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use seawall_media::Region;
use zerocopy::IntoBytes;

use crate::format::{
    AREA_SLOTS_AT, AreaHeader, Layout, SpillDescriptor, SpillEntry, Spilled, Superblock, slot_at,
};

/// An area to be made with a pool.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where it will be: a file that does not exist yet, or a block device.
    pub path: PathBuf,
    /// Bytes of it.
    pub bytes: u64,
}

impl Plan {
    /// How many slots such an area has.
    pub(crate) fn slots(&self, layout: Layout) -> u32 {
        let room = self.bytes.saturating_sub(AREA_SLOTS_AT) / u64::from(layout.segment_bytes);
        u32::try_from(room).unwrap_or(u32::MAX)
    }
}

/// The area that a pool names. It may not be there.
pub struct Area {
    path: PathBuf,
    slots: u32,
    segment_bytes: u32,
    /// The descriptor to read it, or why there is none.
    file: Result<File, String>,
}

/// Writes an area's header into a file that has room for it, and the area's descriptor into the pool.
///
/// # Errors
/// The file's error; a path that is too long.
pub(crate) fn make(file: &File, path: &Path, slots: u32, region: &Region, sb: &Superblock) -> io::Result<()> {
    let layout = sb.layout();
    let area = random()?;
    let mut block = vec![0; 4096];
    let header = AreaHeader::new(sb.uuid, area, layout.segment_bytes, slots);
    block[..size_of::<AreaHeader>()].copy_from_slice(header.as_bytes());
    file.write_all_at(&block, 0)?;
    file.sync_all()?;
    let named = SpillDescriptor::new(slots, area, path.as_os_str().as_bytes());
    let named = named.ok_or_else(|| io::Error::other("its path is too long"))?;
    (0..slots).for_each(|slot| SpillEntry::of(layout, slot).format(region));
    named.store(region, layout);
    Ok(())
}

fn random() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes)
}

impl Area {
    /// The area of a pool, if it has one. An area that cannot be opened, or belongs to another pool, is known by name
    /// only. `None` also if its descriptor is damaged: [`Area::is_damaged`].
    pub fn of(region: &Region, sb: &Superblock) -> Option<Self> {
        let named = sb.spills().then(|| SpillDescriptor::read(region, sb.layout()))??;
        let path = PathBuf::from(OsStr::from_bytes(named.path()));
        let file = believe(&path, &named, sb);
        Some(Self { path, slots: named.slots, segment_bytes: sb.segment_bytes, file })
    }

    /// True if the pool has an area whose descriptor is damaged.
    pub fn is_damaged(region: &Region, sb: &Superblock) -> bool {
        sb.spills() && SpillDescriptor::read(region, sb.layout()).is_none()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Slots, each as long as a segment.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Bytes of all slots.
    pub fn bytes(&self) -> u64 {
        u64::from(self.slots) * u64::from(self.segment_bytes)
    }

    /// Why it cannot be read, if so.
    pub fn trouble(&self) -> Option<&str> {
        self.file.as_ref().err().map(String::as_str)
    }

    /// Reads from the slots as if they lay one behind the other. The page cache may keep the result: nothing is written
    /// meanwhile.
    ///
    /// # Errors
    /// The device's error.
    pub fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let file = self.file.as_ref().map_err(|why| io::Error::other(why.clone()))?;
        file.read_exact_at(into, AREA_SLOTS_AT + at)
    }

    /// A slot's content, if it matches its entry.
    pub(crate) fn slot(&self, slot: u32, entry: &Spilled, into: &mut [u8]) -> bool {
        let read = self.read(slot_at(slot, self.segment_bytes) - AREA_SLOTS_AT, into);
        read.is_ok() && seawall_media::crc32c(into) == entry.sum
    }

    /// A descriptor for durable writes: past the page cache, where the file system can do that. A device is opened with
    /// this process as its only user, so that nobody mounts it meanwhile.
    pub(crate) fn for_writing(&self) -> io::Result<OwnedFd> {
        let file = self.file.as_ref().map_err(|why| io::Error::other(why.clone()))?;
        let is_device = file.metadata()?.file_type().is_block_device();
        let alone = if is_device { OFlags::EXCL } else { OFlags::empty() };
        let open = |flags: OFlags| {
            let flags = (flags | alone).bits() as i32;
            OpenOptions::new().read(true).write(true).custom_flags(flags).open(&self.path)
        };
        open(OFlags::DIRECT).or_else(|_| open(OFlags::empty())).map(OwnedFd::from)
    }

    /// The same area for another mapping of its pool, which a simulated pool needs.
    pub fn again(&self) -> Self {
        let file = match &self.file {
            Ok(file) => file.try_clone().map_err(|e| e.to_string()),
            Err(why) => Err(why.clone()),
        };
        Self { path: self.path.clone(), file, ..*self }
    }
}

fn believe(path: &Path, named: &SpillDescriptor, sb: &Superblock) -> Result<File, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let mut block = vec![0; 4096];
    file.read_exact_at(&mut block, 0).map_err(|e| e.to_string())?;
    let header = AreaHeader::parse(&block).ok_or("it is not a spill area, or its first block is damaged")?;
    let expected = AreaHeader::new(sb.uuid, named.area, sb.segment_bytes, named.slots);
    if header != expected {
        return Err("it belongs to another pool".into());
    }
    Ok(file)
}
