//! A loop device in the place of a disk.

use std::process::Command;

use tempfile::NamedTempFile;

use super::is_root;

/// Detached, and its file removed, when dropped.
pub struct LoopDevice {
    path: String,
    _file: NamedTempFile,
}

impl LoopDevice {
    /// One of so many bytes, all zero. `None` where there are none, or none for this user.
    pub fn new(bytes: u64) -> Option<Self> {
        let file = NamedTempFile::new_in("/var/tmp").expect("a file");
        file.as_file().set_len(bytes).expect("room");
        let mut losetup = Command::new("losetup");
        let made = losetup.args(["--find", "--show", "--direct-io=on"]).arg(file.path()).output();
        let made = made.ok().filter(|made| is_root() && made.status.success())?;
        Some(Self { path: String::from_utf8_lossy(&made.stdout).trim().into(), _file: file })
    }

    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.path]).status();
    }
}
