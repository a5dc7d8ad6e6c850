//! What the guest is made of, from the distribution's packages; nothing is installed for it.
//!
//! In: a directory to keep downloads in. Out: a tree with the unpacked packages, and the kernel's version.
//! A tree that is there already is used again.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tool;

/// Depends on the present kernel for virtual machines. The "cloud" kernel has what the test needs (nfit, DAX,
/// XFS, virtio) and is small.
const KERNEL: &str = "linux-image-cloud-amd64";
/// What else runs in the guest, with the libraries that a usual host lacks.
const PACKAGES: [&str; 14] = [
    "busybox-static",
    "ndctl",
    "libdaxctl1",
    "libndctl6",
    "libcxl1",
    "daxctl",
    "libiniparser1",
    "libjson-c5",
    "libkmod2",
    "libtraceevent1",
    "libtracefs1",
    "libinih1",
    "liburcu8",
    "xfsprogs",
];

/// Unpacked packages.
pub struct Packages {
    /// Their files.
    pub tree: PathBuf,
    /// The kernel's version, as its files are named.
    pub kernel: String,
}

impl Packages {
    /// Downloads and unpacks.
    ///
    /// # Errors
    /// What apt-get or dpkg said.
    pub fn get(cache: &Path) -> Result<Self> {
        let tree = cache.join("tree");
        let kernel_package = kernel_package(&mut Command::new("apt-cache"))?;
        let mark = cache.join("complete");
        let all = format!("{kernel_package} {}", PACKAGES.join(" "));
        if std::fs::read_to_string(&mark).is_ok_and(|text| text == all) {
            return Self::found(tree);
        }
        let debs = cache.join("debs");
        for dir in [&debs, &tree] {
            let _ = std::fs::remove_dir_all(dir);
            tool::directory(dir)?;
        }
        let mut download = Command::new("apt-get");
        download.args(["--quiet", "--quiet", "download", &kernel_package]).args(PACKAGES);
        tool::run(download.current_dir(&debs)).context("cannot download packages (apt-get update first?)")?;
        unpack(&debs, &tree)?;
        std::fs::write(&mark, all)?;
        Self::found(tree)
    }

    /// What is unpacked there.
    ///
    /// # Errors
    /// There is no kernel.
    pub fn found(tree: PathBuf) -> Result<Self> {
        let mut versions = std::fs::read_dir(tree.join("lib/modules"))?;
        let kernel = versions.next().context("the kernel's package has no modules")??.file_name();
        Ok(Self { tree, kernel: kernel.to_string_lossy().into_owned() })
    }

    /// The kernel's image.
    pub fn vmlinuz(&self) -> PathBuf {
        self.tree.join("boot").join(format!("vmlinuz-{}", self.kernel))
    }

    /// A file of these packages.
    pub fn file(&self, path: &str) -> PathBuf {
        self.tree.join(path)
    }
}

/// Unpacks all packages of a directory.
///
/// # Errors
/// What dpkg said.
pub fn unpack(debs: &Path, tree: &Path) -> Result<()> {
    for deb in std::fs::read_dir(debs)? {
        tool::run(Command::new("dpkg").arg("-x").arg(deb?.path()).arg(tree))?;
    }
    Ok(())
}

/// The package behind the metapackage: the latter holds no files. `apt_cache` is the command, with its options.
///
/// # Errors
/// It knows none.
pub fn kernel_package(apt_cache: &mut Command) -> Result<String> {
    let depends = tool::text(apt_cache.args(["depends", KERNEL]))?;
    let mut names = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let name = names.find(|name| name.starts_with("linux-image-")).context("apt-cache knows no kernel")?;
    ensure!(!name.contains('<'), "{name} is a virtual package: apt-get update first?");
    Ok(name.to_owned())
}
