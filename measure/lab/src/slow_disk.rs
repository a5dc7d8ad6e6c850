//! A disk that takes its time over each flush: a stand-in, in memory, for a slow volume.
//!
//! The one of the power cut tests ([`seawall_faulty_disk`]), with a real ext4 on it: FUSE, a loop device, and a flush
//! that sleeps. Its reads and writes are as fast as memory; only what waits for a flush waits.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use seawall_faulty_disk::Disk;

use crate::identity::Identity;
use crate::lab::Lab;
use crate::loop_disk::LoopDisk;

/// Mounted; unmounted on drop, the file system first.
pub struct SlowDisk {
    files: Option<LoopDisk>,
    disk: Disk,
}

impl SlowDisk {
    /// It has a file system of its own, which only root mounts.
    pub fn is_possible() -> bool {
        Identity::find().is_ok_and(|identity| identity.is_other())
    }

    /// Of so many bytes of memory, taken as they are written; slow from now on.
    ///
    /// # Errors
    /// If we may not mount.
    pub fn mount(lab: &Lab, bytes: u64, flush: Duration) -> Result<Self> {
        let disk = Disk::mount(&lab.work.data("slow-disk"), bytes)?;
        let files = Some(LoopDisk::on(lab, "slow", disk.file().to_owned())?);
        disk.slow_down(flush);
        Ok(SlowDisk { files, disk })
    }

    /// Where its file system is mounted; it belongs to the databases' user.
    pub fn path(&self) -> &Path {
        self.files.as_ref().expect("taken by drop alone").path()
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        self.disk.slow_down(Duration::ZERO);
        self.files = None;
        // The loop device lets go of it a moment after the unmount.
        if let Err(e) = self.disk.wait_closed() {
            errln!("seawall-lab: cannot close the slow disk: {e:#}");
        }
    }
}
