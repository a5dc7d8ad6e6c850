//! When commits of a run are waited for.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// When a session waits until what it committed is durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitMode {
    /// After each operation, as applications do.
    #[default]
    PerOperation,
    /// Each operation commits and nobody waits; one wait when the session ends, as SLOB in PL/SQL does
    Asynchronous,
    /// Everything a session does is one transaction, as pgio does
    OneTransaction,
}
