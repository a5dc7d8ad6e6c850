//! Files with live records that cannot be written: a reason to refuse, unless an operator lets their records go.

use std::path::PathBuf;

use super::report::{Options, RecoverError, Report};

/// A file with live records that cannot be written.
#[derive(Debug)]
pub struct Unresolved {
    /// Where it was registered.
    pub path: PathBuf,
    /// How many of its records are live.
    pub records: u64,
    /// What is wrong.
    pub why: String,
}

impl std::fmt::Display for Unresolved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} records): {}", self.path.display(), self.records, self.why)
    }
}

/// Files that cannot be written stop the recovery, unless the operator lets their records go.
pub(super) fn give_up(
    unresolved: Vec<Unresolved>,
    options: Options,
    report: &mut Report,
) -> Result<(), RecoverError> {
    if !unresolved.is_empty() && !options.accept_loss {
        return Err(RecoverError::Unresolved(unresolved));
    }
    report.given_up.extend(unresolved.iter().map(ToString::to_string));
    Ok(())
}
