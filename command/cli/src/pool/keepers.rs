//! A log that keepers on other hosts keep, as an option of whoever makes one.

use std::path::Path;

use anyhow::{Result, bail};
use seawall_daemon::kept::{self, KeptError, Mode};

use crate::commands::keeper::Security;

/// The keepers of a log.
#[derive(clap::Args)]
pub struct Keepers {
    /// Keep the log in memory, with copies on other hosts, in keepers (`seawall keeper serve`): HOST:PORT, several
    /// times. The pool's file records them
    #[arg(
        long,
        value_name = "HOST:PORT",
        requires = "pool",
        conflicts_with_all = ["emulated", "spill", "block"]
    )]
    keeper: Vec<String>,
    /// With --keeper: how many keepers must confirm a commit before it is acknowledged; without it more than half
    #[arg(long, requires = "keeper")]
    acks: Option<usize>,
    /// With --keeper: what commits do while too few keepers can be reached. protection: they wait, and fail after 30
    /// seconds. availability: after five seconds they are made durable on this host's own disk, until enough keepers
    /// can be reached again
    #[arg(long, requires = "keeper", value_name = "MODE", value_parser = mode)]
    mode: Option<Mode>,
    #[command(flatten)]
    security: Security,
}

fn mode(text: &str) -> Result<Mode> {
    match text {
        "protection" => Ok(Mode::Protection),
        "availability" => Ok(Mode::Availability),
        _ => bail!("must be protection or availability"),
    }
}

impl Keepers {
    /// True if nobody was named.
    pub fn is_empty(&self) -> bool {
        self.keeper.is_empty()
    }

    /// Refuses options that say how nobody is reached.
    ///
    /// # Errors
    /// In words.
    pub fn check(&self) -> Result<()> {
        if self.is_empty() && !self.security.transport()?.is_default() {
            bail!(
                "--tls and --clear-text say how to reach keepers, and no keeper is named (--keeper HOST:PORT)"
            );
        }
        Ok(())
    }

    /// Makes a log of so many bytes there, whose file is at `at`.
    ///
    /// # Errors
    /// [`KeptError`], or a directory that is none.
    pub fn make(&self, at: &Path, size: u64) -> Result<()> {
        let acks = self.acks.unwrap_or(self.keeper.len() / 2 + 1);
        let (transport, mode) = (self.security.transport()?, self.mode.unwrap_or_default());
        Ok(kept::create(at, size, &self.keeper, acks, transport, mode)?)
    }

    /// A log that is there must be kept by those that were named.
    ///
    /// # Errors
    /// [`KeptError`]: it is kept by others, or by nobody.
    pub fn are_of(&self, at: &Path) -> Result<(), KeptError> {
        if self.is_empty() {
            return Ok(());
        }
        let there = kept::keepers(at)?.unwrap_or_default();
        let is_same =
            self.keeper.iter().all(|keeper| there.contains(keeper)) && there.len() == self.keeper.len();
        if is_same { Ok(()) } else { Err(KeptError::Others { path: at.into(), there: there.join(", ") }) }
    }
}
