//! The arguments of `seawall disk`.

use std::path::PathBuf;

use seawall_wire::shm::Policy;

use crate::cache::WantedCache;
use crate::{pool, size};

/// Serve an image file as a virtual machine's disk (vhost-user-blk): the guest's flushes wait only for the log
#[derive(clap::Args)]
pub struct Disk {
    /// The image: a raw file, called *.img or *.raw
    pub(super) image: PathBuf,
    /// Where QEMU connects: -chardev socket,path=SOCKET,reconnect=1
    #[arg(long, required_unless_present = "resize")]
    pub(super) socket: Option<PathBuf>,
    #[command(flatten)]
    pub(super) wanted: pool::Wanted,
    #[command(flatten)]
    pub(super) cache: WantedCache,
    /// What remains of a write after a power cut of the host. atomic: all or nothing of it; with a log on a disk each
    /// write waits for that log. tail: whatever a disk leaves, until the next flush; with a log on a disk only the
    /// flush waits
    #[arg(long, default_value = "atomic", value_parser = ["atomic", "tail"])]
    pub(super) policy: String,
    /// Create the image with this size if it does not exist
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(super) create: Option<u64>,
    /// Grow the image to this size, and exit. The process that serves it does the work, and its guest sees the new size
    /// at once
    #[arg(long, value_name = "SIZE", value_parser = size::parse, conflicts_with_all = ["create", "read_only"])]
    pub(super) resize: Option<u64>,
    /// The guest cannot write. The log is not used
    #[arg(long)]
    pub(super) read_only: bool,
    /// The target of a live migration: another machine serves the image until the guest arrives here
    #[arg(long, conflicts_with_all = ["create", "resize", "cache"])]
    pub(super) incoming: bool,
    /// Queues that the guest may use, one for each of its processors at most
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) queues: u16,
    /// The disk's serial number in the guest, up to 20 bytes
    #[arg(long, default_value = "")]
    pub(super) serial: String,
    /// The group that QEMU runs with: it may connect, besides the socket's owner
    #[arg(long)]
    pub(super) group: Option<String>,
    /// Reads and writes per second, at most
    #[arg(long, value_name = "N")]
    pub(super) iops: Option<u64>,
    /// Bytes read and written per second, at most
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(super) bytes_per_second: Option<u64>,
    /// Do not recover the log when this machine starts after a crash, only when this disk is served again
    #[arg(long)]
    pub(super) no_boot: bool,
    /// Show only important messages
    #[arg(long, short)]
    pub(super) quiet: bool,
}

impl Disk {
    /// The policy of its directory.
    pub(super) fn policy(&self) -> Policy {
        Policy::from_name(&self.policy).unwrap_or(Policy::Atomic)
    }
}
