//! A file system on the disk.

pub mod programs;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use seawall_faulty_disk::Disk;
use seawall_powercut::file_system::FileSystem;
use seawall_powercut::fitness;
use tempfile::TempDir;

const SIZE: u64 = 64 << 20;

/// A disk, and where its file system is to be mounted.
pub struct Scene {
    /// The disk.
    pub disk: Disk,
    /// An empty directory.
    pub at: PathBuf,
    _place: TempDir,
}

impl Scene {
    /// `None`, and said: `what` cannot be tested here.
    pub fn new(what: &str) -> Option<Self> {
        if let Err(missing) = fitness::check(&[], FileSystem::default()) {
            let _ = writeln!(std::io::stderr(), "\nSKIPPED, {what} WAS NOT TESTED: {missing:#}\n");
            return None;
        }
        let place = tempfile::tempdir().expect("a place");
        let (under, at) = (place.path().join("disk"), place.path().join("mount"));
        std::fs::create_dir(&under).and_then(|()| std::fs::create_dir(&at)).expect("directories");
        Some(Self { disk: Disk::mount(&under, SIZE).expect("a disk"), at, _place: place })
    }
}

/// Mounted; unmounted when dropped.
pub struct Mounted<'p>(&'p Path);

impl<'p> Mounted<'p> {
    /// Makes an ext4 on the disk and mounts it.
    pub fn new(scene: &'p Scene) -> Self {
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(scene.disk.file()));
        Self::again(scene)
    }

    /// Mounts what is there.
    pub fn again(scene: &'p Scene) -> Self {
        run(Command::new("mount").args(["-o", "loop"]).arg(scene.disk.file()).arg(&scene.at));
        Self(&scene.at)
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
