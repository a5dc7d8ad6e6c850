//! The front that a logged side's database uses: the preload in its own process, or a mount of its directory.

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
}

impl Front {
    /// What distinguishes the name of a campaign's result.
    pub fn result(self) -> &'static str {
        match self {
            Front::Preload => "",
            Front::Mount => "-mount",
        }
    }
}
