//! Which medium is this, and what does it survive?
//!
//! Only the kernel can say that stores to a mapping survive power loss: it grants `MAP_SYNC` on a DAX
//! mapping of persistent memory and refuses it everywhere else. Names and mount sources prove nothing: a
//! tmpfs mounted "from" `/dev/pmem0` ignores its source and is RAM.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::magic::{BTRFS, EXT4, OVERLAYFS, TMPFS, XFS};
use crate::{Flush, MapError, Region, flush_instruction};

/// The probed strength of a medium. The texts are the ones shown to people everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Persistent memory: flushed stores survive power loss.
    Pmem,
    /// A block device, or an ordinary file on one: what a journal holds survives.
    Block,
    /// Memory of this host, with copies that other hosts keep.
    Replicated,
    /// Memory that stands in for it.
    Emulated,
}

impl Medium {
    /// One word for scripts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pmem => "pmem",
            Self::Block => "block",
            Self::Replicated => "replicated",
            Self::Emulated => "emulated",
        }
    }

    /// The honest label for people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Pmem => "pmem (persistent memory: survives power loss)",
            Self::Block => "block (survives power loss if the device honours flush)",
            Self::Replicated => {
                "replicated (memory of this and other hosts: `seawall status` says which losses it survives)"
            }
            Self::Emulated => "emulated (RAM: survives a crash of the database, not of the machine)",
        }
    }
}

/// What was found under a pool file.
#[derive(Debug)]
pub struct Probe {
    /// What it survives.
    pub medium: Medium,
    /// Why we say so, for `status` and `inspect`.
    pub because: String,
}

/// A probe that could not answer.
#[derive(Debug)]
pub enum ProbeError {
    /// The file could not be mapped at all.
    Map(MapError),
    /// The file system could not be asked.
    Io(std::io::Error),
}

impl std::fmt::Display for ProbeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Map(e) => write!(f, "cannot map the file: {e:?}"),
            Self::Io(e) => write!(f, "cannot query the file system: {e}"),
        }
    }
}

impl std::error::Error for ProbeError {}

/// Probes an open file of at least one page.
///
/// # Errors
/// [`ProbeError`] if the file cannot be mapped or its file system not asked.
pub fn probe(file: &File) -> Result<Probe, ProbeError> {
    let fs = rustix::fs::fstatfs(file).map_err(|e| ProbeError::Io(e.into()))?;
    let fs_name = fs_name(fs.f_type as u64);
    // For reading: whoever looks whether somebody writes to the pool must not take us for a writer.
    match Region::map_for_probe(file, 4096) {
        Ok(_) if flush_instruction() == Flush::None => Ok(Probe {
            medium: Medium::Emulated,
            because: "DAX mapping, but no flush instruction is known for this CPU".into(),
        }),
        Ok(_) => {
            Ok(Probe { medium: Medium::Pmem, because: format!("the kernel grants MAP_SYNC on {fs_name}") })
        }
        Err(MapError::Kernel(code)) if refuses_sync(code) => Ok(Probe {
            medium: Medium::Emulated,
            because: format!("{fs_name}: the kernel refuses MAP_SYNC, stores live in RAM"),
        }),
        Err(e) => Err(ProbeError::Map(e)),
    }
}

fn refuses_sync(errno: i32) -> bool {
    errno == Errno::OPNOTSUPP.raw_os_error() || errno == Errno::INVAL.raw_os_error()
}

fn fs_name(magic: u64) -> &'static str {
    match magic {
        TMPFS => "tmpfs",
        EXT4 => "ext4",
        XFS => "xfs",
        BTRFS => "btrfs",
        OVERLAYFS => "overlayfs",
        _ => "this file system",
    }
}

/// Mount points whose options say DAX: where a default pool may be made. Candidates only: [`probe`] decides.
pub fn dax_mounts() -> Vec<PathBuf> {
    std::fs::read_to_string("/proc/self/mounts").map(|text| dax_in(&text)).unwrap_or_default()
}

fn dax_in(mounts: &str) -> Vec<PathBuf> {
    let is_dax = |option: &str| matches!(option, "dax" | "dax=always" | "dax=inode");
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (at, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
            let dax = matches!(kind, "ext4" | "xfs") && options.split(',').any(is_dax);
            dax.then(|| Path::new(at).to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Holds: P6
    #[test]
    fn tmpfs_is_ram_whatever_it_was_mounted_from() {
        let mounts = "/dev/pmem0 /dev/shm tmpfs rw,dax 0 0\n/dev/pmem1 /pm ext4 rw,dax=always 0 0\n";
        assert_eq!(dax_in(mounts), [PathBuf::from("/pm")]);
    }

    // Holds: P6
    #[test]
    fn memory_and_ordinary_files_are_emulated() {
        for file in [tempfile::tempfile_in("/dev/shm"), tempfile::tempfile_in("/var/tmp")] {
            let file = file.expect("a temporary file");
            file.set_len(4096).expect("room");
            assert_eq!(probe(&file).expect("an answer").medium, Medium::Emulated);
        }
    }
}
