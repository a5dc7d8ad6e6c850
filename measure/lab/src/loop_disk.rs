//! A loop device over a file, with a file system of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use seawall_awr::placement::Placement;

use crate::case::FileSystem;
use crate::lab::Lab;
use crate::process::run;
use crate::trial::throttle;

/// A file system of its own in a file on the same disk.
pub struct LoopDisk {
    image: PathBuf,
    at: PathBuf,
}

impl FileSystem {
    /// What makes one.
    fn maker(self) -> &'static str {
        match self {
            Self::Ext4 => "mkfs.ext4",
            Self::Xfs => "mkfs.xfs",
        }
    }

    /// Without anything that is left to be done later.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
            Self::Xfs => &["-q", "-f"],
        }
    }
}

impl LoopDisk {
    /// Makes an ext4 of this size and mounts it.
    pub fn make(lab: &Lab, name: &str, bytes: u64) -> Result<Self> {
        Self::of(lab, name, bytes, FileSystem::Ext4)
    }

    /// The same with this kind of file system.
    pub fn of(lab: &Lab, name: &str, bytes: u64, files: FileSystem) -> Result<Self> {
        let image = lab.work.data(&format!("{name}.img"));
        // Allocated, so that the host's file system need not do it while the database waits.
        let mut allocate = Command::new("fallocate");
        allocate.args(["-l", &bytes.to_string()]).arg(&image);
        run(allocate, "fallocate")?;
        Self::with(lab, name, image, files)
    }

    /// Makes an ext4 in this file and mounts it.
    pub fn on(lab: &Lab, name: &str, image: PathBuf) -> Result<Self> {
        Self::with(lab, name, image, FileSystem::Ext4)
    }

    fn with(lab: &Lab, name: &str, image: PathBuf, files: FileSystem) -> Result<Self> {
        ensure!(lab.identity.is_other(), "mounting a file system needs root");
        let disk = LoopDisk { at: lab.work.data(&format!("{name}-fs")), image };
        let mut mkfs = Command::new(files.maker());
        mkfs.args(files.options()).arg(&disk.image);
        run(mkfs, files.maker())?;
        lab.fresh_dir(&disk.at)?;
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop"]).arg(&disk.image).arg(&disk.at);
        run(mount, "mount -o loop")?;
        lab.identity.own(&disk.at)?;
        Ok(disk)
    }

    /// The same as a stand-in for a device: what is written to it goes to the disk below at once, past the cache.
    pub fn device(lab: &Lab, name: &str, bytes: u64) -> Result<Self> {
        let disk = Self::make(lab, name, bytes)?;
        let mut direct = Command::new("losetup");
        direct.arg("--direct-io=on").arg(format!("/dev/{}", disk.block()?));
        run(direct, "losetup --direct-io=on")?;
        throttle::prove(&disk.number()?, disk.path()).context("cannot make a stand-in for a device")?;
        Ok(disk)
    }

    /// Its numbers, as control groups name it.
    pub fn number(&self) -> Result<String> {
        let path = format!("/sys/block/{}/dev", self.block()?);
        Ok(std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?.trim().to_owned())
    }

    /// `loop0`
    fn block(&self) -> Result<String> {
        let found = Placement::of(&self.at)?;
        found
            .mapping
            .first()
            .cloned()
            .with_context(|| format!("cannot tell what {} lies on", self.at.display()))
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.at).output();
        let _ = std::fs::remove_file(&self.image);
        let _ = std::fs::remove_dir(&self.at);
    }
}
