//! What the log of a logged side lies on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::outside::{BASE, DATA};

/// What the log lies on.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Medium {
    /// Memory beside the machine, which keeps every store.
    #[default]
    Memory,
    /// A file on the disk whose power is cut.
    Disk,
}

impl Medium {
    /// Where the log of this name is.
    pub fn log(self, name: &str) -> PathBuf {
        match self {
            Medium::Memory => Path::new(BASE).join("pmem").join(name),
            Medium::Disk => place().join(name),
        }
    }

    /// What distinguishes the name of a campaign's result.
    pub fn result(self) -> &'static str {
        match self {
            Medium::Memory => "",
            Medium::Disk => "-disk",
        }
    }
}

/// A directory of the disk, where every user may make a log.
fn place() -> PathBuf {
    Path::new(DATA).join("log")
}

/// Makes the directory, on a disk that is being installed.
///
/// # Errors
/// If it cannot be made.
pub fn make_place() -> Result<()> {
    const EVERYBODY: u32 = 0o1777;
    let at = place();
    fs::create_dir(&at)
        .and_then(|()| fs::set_permissions(&at, PermissionsExt::from_mode(EVERYBODY)))
        .with_context(|| format!("cannot create {}", at.display()))
}
