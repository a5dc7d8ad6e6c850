//! What every guest is made of: a kernel, a first root file system, a root file system with the databases.
//!
//! In: what the distribution and our own build have. Out: [`Parts`].

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::packages::Packages;
pub use crate::rootfs::More;
use crate::{initrd, rootfs};

/// What all boots share: files in one directory.
pub struct Parts(PathBuf);

impl Parts {
    /// Makes them in `dir`, with the programs of `release`, and says the kernel's version. What is downloaded from the
    /// distribution is kept there for the next time.
    ///
    /// # Errors
    /// If something is missing.
    pub fn build(release: &Path, dir: &Path, more: &More) -> Result<(Self, String)> {
        let packages = Packages::get(&dir.join("packages"))?;
        let parts = Self::at(dir);
        rootfs::build(&packages, release, dir, &parts.rootfs(), more).context("building the guest")?;
        std::fs::copy(packages.vmlinuz(), parts.vmlinuz()).context("the kernel")?;
        std::fs::write(parts.initrd(), initrd::build(&packages)?).context("the first root file system")?;
        Ok((parts, packages.kernel))
    }

    /// Those that were made in this directory.
    pub fn at(dir: &Path) -> Self {
        Self(dir.to_owned())
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
