//! What kind of device a journal lies on, as far as the kernel knows.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::magic::{RAMFS, TMPFS};

/// Whether the device keeps writes in memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    /// It does: every durable write needs a flush, and the device must honour that.
    Volatile,
    /// It says it does not, or that its cache survives power loss.
    None,
    /// Nobody knows: a file system on several devices, or a stack of which the kernel says nothing.
    Unknown,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockProbe {
    /// Its volatile write cache.
    pub write_cache: WriteCache,
    /// True if one write can be made durable without a flush of everything (forced unit access).
    pub fua: bool,
    /// The unit of addressing, 0 if not known.
    pub logical: u32,
    /// The unit that the device writes whole, if it says the truth; 0 if not known.
    pub physical: u32,
    /// What it is, if it is no disk at all but RAM.
    pub memory: Option<&'static str>,
}

impl BlockProbe {
    /// The block of a journal here: at least a page, so that no two batches share what a device writes whole.
    pub fn block(&self) -> u32 {
        self.logical.max(4096)
    }

    /// In a few words, for `status`. What nobody can ask a device counts as unknown.
    pub fn describe(&self) -> String {
        let cache = match (self.write_cache, self.fua) {
            (WriteCache::Volatile, true) => "volatile write cache, written through by FUA",
            (WriteCache::Volatile, false) => "volatile write cache, flushed with each write",
            (WriteCache::None, _) => "no volatile write cache, as the device claims",
            (WriteCache::Unknown, _) => "write cache unknown, flushed with each write",
        };
        let (logical, physical) = (self.logical, self.physical);
        format!("{cache}; sectors of {logical}/{physical} bytes; power-loss protection unknown")
    }
}

/// Asks sysfs about the device that is, or is below, an open file.
///
/// # Errors
/// If the file cannot be asked for its device.
pub fn probe_block(file: &File) -> io::Result<BlockProbe> {
    let meta = file.metadata()?;
    if meta.file_type().is_block_device() {
        return Ok(of_device(meta.rdev()));
    }
    let in_memory = matches!(rustix::fs::fstatfs(file)?.f_type as u64, TMPFS | RAMFS);
    let memory = in_memory.then_some("its file system");
    let probe = of_device(meta.dev());
    Ok(BlockProbe { memory: memory.or(probe.memory), ..probe })
}

fn of_device(device: u64) -> BlockProbe {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let at = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    // A partition's queue is its disk's.
    let queue = ["queue", "../queue"].map(|q| at.join(q)).into_iter().find(|q| q.is_dir());
    let text = |name: &str| {
        let queue = queue.as_ref()?;
        std::fs::read_to_string(queue.join(name)).ok().map(|text| text.trim().to_owned())
    };
    let number = |name: &str| text(name).and_then(|text| text.parse().ok()).unwrap_or(0);
    let write_cache = match text("write_cache").as_deref() {
        Some("write back") => WriteCache::Volatile,
        Some("write through") => WriteCache::None,
        _ => WriteCache::Unknown,
    };
    let (logical, physical) = (number("logical_block_size"), number("physical_block_size"));
    BlockProbe { write_cache, fua: number("fua") == 1, logical, physical, memory: memory(&at) }
}

/// RAM in the disguise of a device: a RAM disk, compressed or not, or a file in a file system in memory.
fn memory(device: &Path) -> Option<&'static str> {
    let real = std::fs::canonicalize(device).ok()?;
    let is_ram = |part: std::path::Component<'_>| {
        let name = part.as_os_str().to_string_lossy();
        let number = name.strip_prefix("zram").or_else(|| name.strip_prefix("ram"));
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    if real.components().any(is_ram) {
        return Some("this device");
    }
    let backing = std::fs::read_to_string(real.join("loop/backing_file")).ok()?;
    let kind = rustix::fs::statfs(backing.trim_end()).ok()?.f_type as u64;
    matches!(kind, TMPFS | RAMFS).then_some("the file behind this loop device")
}

/// The size of a device or a file.
///
/// # Errors
/// If it cannot be asked.
pub fn size_of(file: &File) -> io::Result<u64> {
    let meta = file.metadata()?;
    if !meta.file_type().is_block_device() {
        return Ok(meta.len());
    }
    rustix::fs::seek(file.as_fd(), rustix::fs::SeekFrom::End(0)).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_an_answer() {
        for dir in ["/dev/shm", "/var/tmp"] {
            let file = tempfile::tempfile_in(dir).expect("a file");
            let probe = probe_block(&file).expect("an answer");
            assert!(probe.block() >= 4096 && !probe.describe().is_empty());
            assert_eq!(size_of(&file).expect("a size"), 0);
        }
        assert_eq!(of_device(0).write_cache, WriteCache::Unknown);
        let memory =
            |dir| probe_block(&tempfile::tempfile_in(dir).expect("a file")).expect("an answer").memory;
        assert!(memory("/dev/shm").is_some() && memory("/var/tmp").is_none());
    }

    #[test]
    fn what_is_not_known_is_not_claimed() {
        let unknown = BlockProbe {
            write_cache: WriteCache::Unknown,
            fua: false,
            logical: 0,
            physical: 0,
            memory: None,
        };
        assert!(unknown.describe().contains("unknown") && unknown.block() == 4096);
    }
}
