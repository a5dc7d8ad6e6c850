//! What every guest is made of: a kernel, a first root file system, a root file system with the databases.
//!
//! In: what the distribution and our own build have. Out: [`Parts`].

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::backports::{Backports, emulator};
use crate::packages::Packages;
pub use crate::rootfs::More;
use crate::{initrd, rootfs, tool};

/// What all boots share: files in one directory.
pub struct Parts(PathBuf);

impl Parts {
    /// Makes them in `dir`, with the programs of `release`, and says the kernel's version. What is downloaded from the
    /// distribution is kept there for the next time.
    ///
    /// # Errors
    /// If something is missing.
    pub fn build(release: &Path, dir: &Path, more: &More) -> Result<(Self, String)> {
        Self::of(Packages::get(&dir.join("packages"))?, release, dir, more)
    }

    /// The same with the kernel and the emulator of the distribution's backports.
    ///
    /// # Errors
    /// If something is missing.
    pub fn build_later(release: &Path, dir: &Path, more: &More) -> Result<(Self, String)> {
        let later = Backports::get(&dir.join("backports"))?;
        let packages = Packages::get(&dir.join("packages"))?;
        later.kernel_into(&packages.tree)?;
        Self::of(Packages::found(packages.tree)?, release, dir, more)
    }

    fn of(packages: Packages, release: &Path, dir: &Path, more: &More) -> Result<(Self, String)> {
        let parts = Self::at(dir);
        rootfs::build(&packages, release, dir, &parts.rootfs(), more).context("cannot build the guest")?;
        std::fs::copy(packages.vmlinuz(), parts.vmlinuz()).context("cannot copy the kernel")?;
        std::fs::write(parts.initrd(), initrd::build(&packages)?)
            .context("cannot write the first root file system")?;
        Ok((parts, packages.kernel))
    }

    /// Those that were made in this directory.
    pub fn at(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    /// QEMU: the one that came with these parts, else the host's.
    ///
    /// # Errors
    /// If it is not installed.
    pub fn qemu(&self) -> Result<Command> {
        match emulator(&self.0) {
            Some(qemu) => Ok(qemu),
            None => Ok(Command::new(tool::need("qemu-system-x86_64", "qemu-system-x86")?)),
        }
    }

    /// The kernel.
    pub fn vmlinuz(&self) -> PathBuf {
        self.0.join("vmlinuz")
    }

    /// The first root file system.
    pub fn initrd(&self) -> PathBuf {
        self.0.join("initrd")
    }

    /// Image of the root file system.
    pub fn rootfs(&self) -> PathBuf {
        self.0.join("rootfs.img")
    }
}
