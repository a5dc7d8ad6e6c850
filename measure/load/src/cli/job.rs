//! What the commands of the larger loads have in common: a database, a ledger, progress, and a result.

use std::fmt::Display;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use seawall_load::progress::Progress;
use seawall_load::sys;
use seawall_load::target::{Target, TargetOptions};
use serde::Serialize;

use super::output::show;
use super::progress::Shown;

/// What every one of them takes.
#[derive(Args)]
pub struct Job {
    #[command(flatten)]
    target: TargetOptions,
    /// Where what was acknowledged is noted: outside the database, and not on a disk whose power is to be cut
    /// [default: LOAD.ledger]
    #[arg(long)]
    ledger: Option<PathBuf>,
    /// Results as JSON
    #[arg(long)]
    json: bool,
}

/// A result of which it is known whether it is good.
pub trait Judged: Display + Serialize {
    /// Neither damage nor a run that was cut short.
    fn is_good(&self) -> bool;
}

impl Job {
    /// The ledger of this load.
    pub fn ledger(&self, load: &str) -> PathBuf {
        self.ledger.clone().unwrap_or_else(|| format!("{load}.ledger").into())
    }

    /// Does something that takes long, and shows its result.
    pub fn show<R: Display + Serialize>(
        &self,
        work: impl FnOnce(&Target, &dyn Progress) -> Result<R>,
    ) -> Result<R> {
        let progress = Shown::new();
        let result = work(&self.target.target()?, &progress)?;
        drop(progress);
        show(&result, self.json)?;
        Ok(result)
    }

    /// A check, and whether it found everything right.
    pub fn check<R: Judged>(&self, check: impl FnOnce(&Target, &dyn Progress) -> Result<R>) -> Result<bool> {
        Ok(self.show(check)?.is_good())
    }

    /// A run that may be interrupted, and a `check` behind it if it was whole. Standard output has the run's result: the
    /// check goes to standard error.
    pub fn run<O: Judged, R: Judged>(
        &self,
        run: impl FnOnce(&Target) -> Result<O>,
        check: Option<impl FnOnce(&Target, &dyn Progress) -> Result<R>>,
    ) -> Result<bool> {
        sys::catch_interrupts();
        let target = self.target.target()?;
        let outcome = run(&target)?;
        show(&outcome, self.json)?;
        let Some(check) = check.filter(|_| outcome.is_good()) else { return Ok(outcome.is_good()) };
        let report = check(&target, &())?;
        eprintln!("{report}");
        Ok(report.is_good())
    }
}
