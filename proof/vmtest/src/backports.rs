//! A later kernel and a later emulator, from the distribution's backports: what volatile CXL memory takes (Linux 6.3,
//! QEMU 8.1). Nothing is installed; lists and packages stay in a directory of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::packages::{kernel_package, unpack};
use crate::tool;

const EMULATOR: [&str; 3] = ["qemu-system-x86", "qemu-system-common", "qemu-system-data"];
const KEY: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Where they are unpacked.
pub struct Backports(PathBuf);

impl Backports {
    /// Downloads and unpacks them, unless they are there.
    ///
    /// # Errors
    /// What apt-get or dpkg said.
    pub fn get(dir: &Path) -> Result<Self> {
        let found = Self(dir.join("tree"));
        if dir.join("complete").exists() {
            return Ok(found);
        }
        for name in ["lists/partial", "cache/archives/partial", "debs", "tree"] {
            tool::directory(&dir.join(name))?;
        }
        let sources = format!("deb [signed-by={KEY}] http://deb.debian.org/debian bookworm-backports main\n");
        std::fs::write(dir.join("sources.list"), sources)?;
        tool::run(apt("apt-get", dir).arg("update")).context("cannot read the list of backports")?;
        let kernel = kernel_package(&mut apt("apt-cache", dir))?;
        let mut download = apt("apt-get", dir);
        tool::run(download.arg("download").args(EMULATOR).arg(&kernel).current_dir(dir.join("debs")))?;
        unpack(&dir.join("debs"), &found.0)?;
        std::fs::write(dir.join("complete"), kernel)?;
        Ok(found)
    }

    /// Puts its kernel in the place of the one in this tree of packages.
    ///
    /// # Errors
    /// Of the disk.
    pub fn kernel_into(&self, tree: &Path) -> Result<()> {
        for part in ["boot", "lib/modules"] {
            let to = tree.join(part);
            let _ = std::fs::remove_dir_all(&to);
            tool::directory(to.parent().context("the path has no parent")?)?;
            tool::run(Command::new("cp").arg("-r").arg(self.0.join(part)).arg(to))?;
        }
        Ok(())
    }
}

/// The emulator that was unpacked beside guests in `dir`, and where it finds what it loads.
pub fn emulator(dir: &Path) -> Option<Command> {
    let tree = dir.join("backports/tree");
    let program = Some(tree.join("usr/bin/qemu-system-x86_64")).filter(|program| program.is_file())?;
    let mut qemu = Command::new(program);
    for share in [tree.join("usr/share/qemu"), "/usr/share/qemu".into(), "/usr/share/seabios".into()] {
        qemu.arg("-L").arg(share);
    }
    Some(qemu)
}

fn apt(program: &str, dir: &Path) -> Command {
    let mut command = Command::new(program);
    let option = |name: &str, value: &str| format!("{name}={value}");
    let at = |name: &str| dir.join(name).to_string_lossy().into_owned();
    for setting in [
        option("Dir::Etc::sourcelist", &at("sources.list")),
        option("Dir::Etc::sourceparts", "-"),
        option("Dir::State::lists", &at("lists")),
        option("Dir::Cache", &at("cache")),
    ] {
        command.arg("-o").arg(setting);
    }
    if program == "apt-get" {
        command.args(["--quiet", "--quiet"]);
    }
    command
}
