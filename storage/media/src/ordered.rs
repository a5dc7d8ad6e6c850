//! Which file systems keep changes of names in their order.

use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use crate::magic;

/// True if a crash leaves a prefix of the changes of names that were made in the file system of `fd`: XFS, and ext4 with a
/// journal.
pub fn keeps_names_in_order(fd: impl AsFd) -> bool {
    let kind = rustix::fs::fstatfs(&fd).map(|fs| fs.f_type as u64);
    match kind {
        Ok(magic::XFS) => true,
        Ok(magic::EXT4) => rustix::fs::fstat(&fd).is_ok_and(|stat| has_journal(stat.st_dev) == Some(true)),
        _ => false,
    }
}

/// Whether the ext4 on this device has a journal. `None`: nobody says so.
pub fn has_journal(device: u64) -> Option<bool> {
    let device = fs::canonicalize(block_device(device)).ok()?;
    let task = Path::new("/sys/fs/ext4").join(device.file_name()?).join("journal_task");
    fs::read_to_string(task).ok().map(|task| task.trim() != "<none>")
}

/// What sysfs knows of this block device.
pub fn block_device(device: u64) -> PathBuf {
    format!("/sys/dev/block/{}:{}", rustix::fs::major(device), rustix::fs::minor(device)).into()
}
