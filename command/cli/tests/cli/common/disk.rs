//! A loop device in the place of a disk.

use std::process::Command;

use tempfile::NamedTempFile;

use super::is_root;

/// Detached, and its file removed, when dropped.
pub struct LoopDevice {
    path: String,
    file: NamedTempFile,
}

impl LoopDevice {
    /// One of so many bytes, all zero. `None` where there are none, or none for this user.
    pub fn new(bytes: u64) -> Option<Self> {
        let file = NamedTempFile::new_in("/var/tmp").expect("a file");
        file.as_file().set_len(bytes).expect("room");
        Self::of(file, &["--direct-io=on"])
    }

    /// The same in memory.
    pub fn in_memory(bytes: u64) -> Option<Self> {
        let file = NamedTempFile::new_in("/dev/shm").expect("a file");
        file.as_file().set_len(bytes).expect("room");
        Self::of(file, &[])
    }

    /// Another one in memory that has what this one has now.
    pub fn copy(&self) -> Self {
        let file = NamedTempFile::new_in("/dev/shm").expect("a file");
        let copied =
            Command::new("cp").arg("--sparse=always").arg(self.file.path()).arg(file.path()).status();
        assert!(copied.expect("cp starts").success(), "a disk is copied");
        Self::of(file, &[]).expect("there was one before")
    }

    fn of(file: NamedTempFile, how: &[&str]) -> Option<Self> {
        let mut losetup = Command::new("losetup");
        let made = losetup.args(["--find", "--show"]).args(how).arg(file.path()).output();
        let made = made.ok().filter(|made| is_root() && made.status.success())?;
        Some(Self { path: String::from_utf8_lossy(&made.stdout).trim().into(), file })
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
