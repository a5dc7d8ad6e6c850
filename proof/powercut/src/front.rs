//! The front that a logged side's database uses: the preload in its own process, a mount of its directory, or the disk of
//! a virtual machine that it runs in.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// By which way writes come to the log.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Front {
    /// `seawall run`.
    #[default]
    Preload,
    /// `seawall mount`; the database runs bare on it.
    Mount,
    /// `seawall disk`; the database runs bare in a guest.
    Disk,
}

impl Front {
    /// What distinguishes the name of a campaign's result.
    pub fn result(self) -> &'static str {
        match self {
            Front::Preload => "",
            Front::Mount => "-mount",
            Front::Disk => "-guest",
        }
    }

    /// How long a machine may take to get to work, or to check. A guest is emulated, and may be booted anew.
    pub fn patience(self) -> Duration {
        Duration::from_secs(if self == Front::Disk { 600 } else { 180 })
    }

    /// How long the disk's flushes take. A commit of a guest's takes long enough to be on a fast disk before anybody waits for
    /// it, and then no cut would find a wait missing.
    pub fn flush_time(self) -> Duration {
        Duration::from_millis(if self == Front::Disk { 50 } else { 0 })
    }

    /// How many times longer everything takes.
    pub fn pace(self) -> u64 {
        if self == Front::Disk { 4 } else { 1 }
    }
}
