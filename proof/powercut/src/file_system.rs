//! The file system on the disk whose power is cut.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::outside::DATA;
use crate::program::{self, Ended, command};

const LIMIT: Duration = Duration::from_secs(60);

/// A kind of file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// ext4 with a journal.
    #[default]
    Ext4,
    /// XFS.
    Xfs,
}

impl FileSystem {
    /// The programs that its rounds need.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &["mkfs.ext4", "e2fsck"],
            Self::Xfs => &["mkfs.xfs"],
        }
    }

    /// Makes one on a disk that holds nothing.
    ///
    /// # Errors
    /// What its program says.
    pub fn make(self, disk: &Path) -> Result<()> {
        let mut mkfs = match self {
            Self::Ext4 => command("mkfs.ext4", &["-q", "-F", "-E", "nodiscard"]),
            Self::Xfs => command("mkfs.xfs", &["-q", "-f", "-K"]),
        };
        let what = mkfs.get_program().to_string_lossy().into_owned();
        let made = mkfs.arg(disk).output().with_context(|| format!("cannot run {what}"))?;
        ensure!(made.status.success(), "{what} failed: {}", String::from_utf8_lossy(&made.stderr));
        Ok(())
    }

    /// Mounts it as a machine does that starts. A disk that `refused` requests may have refused what the file system noted
    /// of that, too, and left it damaged without a word: then all of it is checked, as an administrator would.
    ///
    /// # Errors
    /// If it does not mount.
    pub fn mount(self, disk: &Path, refused: bool) -> Result<()> {
        if self == Self::Xfs {
            return self.attach(disk);
        }
        // As boots do: what ext4 noted of an error before the cut is repaired, or it soon mounts itself read-only.
        check(disk, if refused { "-fy" } else { "-p" })?;
        if self.attach(disk).is_err() {
            // A cut may tear ext4's own superblock, which is two sectors long. There are copies of it.
            let repaired = check(disk, "-y")?;
            self.attach(disk).with_context(|| format!("cannot mount the disk after e2fsck: {repaired}"))?;
        }
        Ok(())
    }

    fn attach(self, disk: &Path) -> Result<()> {
        let options = match self {
            Self::Ext4 => ["-t", "ext4", "-o", "loop,errors=remount-ro"],
            Self::Xfs => ["-t", "xfs", "-o", "loop"],
        };
        let mut attach = Command::new("mount");
        attach.args(options).arg(disk).arg(DATA);
        program::run(attach, "mounting the disk", LIMIT).map(drop)
    }
}

/// The file system's own check, which replays its journal first. If something is left, the mount will say so.
fn check(disk: &Path, how: &str) -> Result<Ended> {
    let mut check = command("e2fsck", &[how]);
    check.arg(disk);
    program::finish(check, "e2fsck", LIMIT)
}
