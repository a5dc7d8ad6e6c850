//! A file system on the disk.

use std::path::Path;
use std::process::Command;

/// Mounted; unmounted when dropped.
pub struct Mounted<'p>(&'p Path);

impl<'p> Mounted<'p> {
    /// Makes an ext4 on the disk and mounts it.
    pub fn new(disk: &Path, at: &'p Path) -> Self {
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(disk));
        Self::again(disk, at)
    }

    /// Mounts what is there.
    pub fn again(disk: &Path, at: &'p Path) -> Self {
        run(Command::new("mount").args(["-o", "loop"]).arg(disk).arg(at));
        Self(at)
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

fn run(command: &mut Command) {
    assert!(command.status().is_ok_and(|status| status.success()), "{command:?}");
}
