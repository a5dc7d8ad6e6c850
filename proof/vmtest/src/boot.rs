//! What one boot of a virtual machine is like: its processor, its memory, its disks, and its session's options.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::cpio::Archive;
use crate::hardware::Hardware;
use crate::parts::Parts;

/// Bytes of the persistent memory. Without its label area (2 MiB) a multiple of 16 MiB, or no namespace can
/// be made.
pub const PMEM_BYTES: u64 = 514 << 20;
/// Bytes of the disk with the databases.
pub const DISK_BYTES: u64 = 768 << 20;

/// Where a machine's data is.
pub enum Data {
    /// On a disk of [`seawall_faulty_disk::nbd`] with this image.
    Lossy {
        /// The image.
        image: PathBuf,
        /// How long a flush takes.
        flush_time: Duration,
    },
    /// In a file, by QEMU's own virtio-blk.
    File {
        /// The image.
        image: PathBuf,
        /// As QEMU calls it.
        cache: &'static str,
    },
    /// On a disk that another process serves (vhost-user-blk).
    Served {
        /// Where.
        socket: PathBuf,
    },
}

/// What one boot is like, and its name.
pub struct Boot<'a> {
    /// The parts.
    pub parts: &'a Parts,
    /// Directory for the files of each boot.
    pub dir: &'a Path,
    /// The processor, as QEMU calls it.
    pub cpu: &'a str,
    /// Name of this boot's files.
    pub name: String,
    /// Options for the guest's session.
    pub options: Vec<(&'a str, &'a str)>,
    /// Ports that are ledgers; one for results is always there.
    pub ports: &'static [&'static str],
    /// An archive that is laid over the first root file system.
    pub over: Vec<u8>,
    /// Image of the persistent memory, if it has one.
    pub pmem: Option<PathBuf>,
    /// Its data.
    pub data: Data,
    /// For one of several: its port of the network, and the socket to reach that. Such a one takes orders, and a
    /// second disk.
    pub network: Option<(usize, String)>,
    /// What few machines have.
    pub hardware: Hardware,
}

impl<'a> Boot<'a> {
    /// One with a disk, and with nothing else that a boot may have.
    pub fn of(parts: &'a Parts, dir: &'a Path, name: String, data: Data) -> Self {
        Self {
            parts,
            dir,
            cpu: "max",
            name,
            options: Vec::new(),
            ports: &[],
            over: Vec::new(),
            pmem: None,
            data,
            network: None,
            hardware: Hardware::default(),
        }
    }
}

/// Makes the image of a new disk, or of a new memory.
///
/// # Errors
/// With its name.
pub fn image(path: &Path, bytes: u64) -> Result<()> {
    let file = std::fs::File::create(path).with_context(|| path.display().to_string())?;
    Ok(file.set_len(bytes)?)
}

/// What is laid over it for the guest to compare with: ledgers of earlier boots, by their databases.
pub fn ledgers<'l>(all: impl IntoIterator<Item = (&'l str, &'l String)>) -> Vec<u8> {
    let mut archive = Archive::default();
    archive.directory("ledger");
    for (database, text) in all {
        archive.file(&format!("ledger/{database}"), text.as_bytes());
    }
    archive.finish()
}
