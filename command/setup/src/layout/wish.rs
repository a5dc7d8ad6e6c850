//! What is asked for.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::mkfs::FileSystem;
use crate::owner::Owner;

/// What makes one of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Linux software RAID: striped and mirrored, in place.
    Md,
    /// btrfs: copy on write; disks of any size can be added and dropped.
    Btrfs,
}

/// How many copies there are of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Redundancy {
    /// One: the disks below are arrays that answer for themselves.
    External,
    /// Two.
    Normal,
    /// Three.
    High,
}

impl Redundancy {
    /// Copies of each block.
    pub fn copies(self) -> usize {
        match self {
            Self::External => 1,
            Self::Normal => 2,
            Self::High => 3,
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// By which it is known later.
    pub name: String,
    /// What makes one of several.
    pub by: By,
    /// Copies.
    pub redundancy: Redundancy,
    /// Bytes that lie on one disk before the next one is used (ASM: allocation unit).
    pub unit: u64,
    /// The data's disks, and the redo log's too unless that has its own. `None`: its controller is its group.
    pub disks: Vec<(PathBuf, Option<String>)>,
    /// Disks for the redo log alone.
    pub redo: Vec<(PathBuf, Option<String>)>,
    /// Where it is mounted.
    pub mount: PathBuf,
    /// Where the redo log's own is.
    pub redo_mount: Option<PathBuf>,
    /// With which file system (md).
    pub file_system: FileSystem,
    /// Its owner.
    pub owner: Option<Owner>,
    /// Lines of /etc/fstab even where systemd runs.
    pub fstab: bool,
    /// Results of the lab's case `layout`.
    pub measured: PathBuf,
}
