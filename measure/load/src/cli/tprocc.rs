//! `seawall-load tprocc …`

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use seawall_load::sys;
use seawall_load::target::TargetOptions;
use seawall_load::tprocc::{self, RunOptions, SetupOptions};

use super::output::show;
use super::progress::Shown;

/// A TPROC-C-like mix: no figure from it is a result of TPC-C
#[derive(Subcommand)]
pub enum Tprocc {
    /// Make and load the warehouses, and begin the ledger
    Setup(Setup),
    /// Let virtual users work
    Run(Run),
    /// Test the consistency conditions, and that nothing acknowledged is missing
    Check(Common),
}

/// What all of them take.
#[derive(Args)]
pub struct Common {
    #[command(flatten)]
    target: TargetOptions,
    /// Where acknowledged orders and payments are noted: outside the database, and not on a disk whose power is to
    /// be cut
    #[arg(long, default_value = "tprocc.ledger")]
    ledger: PathBuf,
    /// Results as JSON
    #[arg(long)]
    json: bool,
}

/// Options of a setup.
#[derive(Args)]
pub struct Setup {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    options: SetupOptions,
}

/// Options of a run.
#[derive(Args)]
pub struct Run {
    #[command(flatten)]
    common: Common,
    /// Virtual users
    #[arg(long, short = 'u', default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=0xffff))]
    users: u32,
    /// Length of the measured part
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Unmeasured seconds before it
    #[arg(long, default_value_t = 0.0)]
    rampup: f64,
    /// Let users type and think, as specified
    #[arg(long)]
    keying: bool,
    /// An open loop: transactions a second, all users together; latencies count from the intended start
    #[arg(long, conflicts_with = "keying")]
    rate: Option<f64>,
    /// Do not test the consistency conditions afterwards
    #[arg(long)]
    no_check: bool,
}

impl Tprocc {
    /// `false`: damage, or a run that was cut short.
    pub fn run(self) -> Result<bool> {
        match self {
            Tprocc::Setup(setup) => setup.run().map(|()| true),
            Tprocc::Run(run) => run.run(),
            Tprocc::Check(common) => common.check(common.json),
        }
    }
}

impl Setup {
    fn run(&self) -> Result<()> {
        let progress = Shown::new();
        let (target, ledger) = (self.common.target.target()?, &self.common.ledger);
        let report = tprocc::setup(&target, &self.options, ledger, &progress)?;
        drop(progress);
        show(&report, self.common.json)
    }
}

impl Run {
    fn run(&self) -> Result<bool> {
        let options = RunOptions {
            users: self.users,
            seconds: self.seconds,
            rampup: self.rampup,
            keying: self.keying,
            rate: self.rate,
            ledger: self.common.ledger.clone(),
        };
        sys::catch_interrupts();
        let outcome = tprocc::run(&self.common.target.target()?, &options)?;
        show(&outcome, self.common.json)?;
        if self.no_check || !outcome.is_whole() {
            return Ok(outcome.is_whole());
        }
        self.common.consistent()
    }
}

impl Common {
    fn check(&self, json: bool) -> Result<bool> {
        let progress = Shown::new();
        let report = tprocc::check(&self.target.target()?, &self.ledger, &progress)?;
        drop(progress);
        show(&report, json)?;
        Ok(report.is_clean())
    }

    /// The check behind a run: standard output has the run's result, so this one goes to standard error.
    fn consistent(&self) -> Result<bool> {
        let report = tprocc::check(&self.target.target()?, &self.ledger, &())?;
        eprintln!("{report}");
        Ok(report.is_clean())
    }
}
