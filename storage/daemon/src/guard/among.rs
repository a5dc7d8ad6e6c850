//! Whom a guard's move waits for.

use std::path::Path;

use seawall_core::guards::{Guards, Moving};

use super::fault::GuardError;

/// Who may use the files of a guard while that is raised or lowered.
#[derive(Clone, Copy)]
pub enum Among<'s> {
    /// No client of a log.
    Nobody,
    /// The clients of this log.
    Clients(Guards<'s>),
}

impl<'s> Among<'s> {
    /// Until the result is dropped none of them acts on a name that a guard takes.
    pub(super) fn alone(self, at: &Path) -> Result<Option<Moving<'s>>, GuardError> {
        let Self::Clients(guards) = self else { return Ok(None) };
        guards.moving().map(Some).map_err(|acting| GuardError::Acting { at: at.to_owned(), pid: acting.pid })
    }
}
