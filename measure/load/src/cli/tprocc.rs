//! `seawall-load tprocc …`

use anyhow::Result;
use clap::{Args, Subcommand};
use seawall_load::progress::Progress;
use seawall_load::target::Target;
use seawall_load::tprocc::{self, CheckReport, Outcome, RunOptions, SetupOptions};

use super::job::{Job, Judged};

/// A TPROC-C-like mix: no figure from it is a result of TPC-C
#[derive(Subcommand)]
pub enum Tprocc {
    /// Make and load the warehouses, and begin the ledger
    Setup(Setup),
    /// Let virtual users work
    Run(Run),
    /// Test the consistency conditions, and that nothing acknowledged is missing
    Check(Job),
}

/// Options of a setup.
#[derive(Args)]
pub struct Setup {
    #[command(flatten)]
    job: Job,
    #[command(flatten)]
    options: SetupOptions,
}

/// Options of a run.
#[derive(Args)]
pub struct Run {
    #[command(flatten)]
    job: Job,
    #[command(flatten)]
    options: RunOptions,
    /// Do not test the consistency conditions afterwards
    #[arg(long)]
    no_check: bool,
}

impl Judged for Outcome {
    fn is_good(&self) -> bool {
        self.is_whole()
    }
}

impl Judged for CheckReport {
    fn is_good(&self) -> bool {
        self.is_clean()
    }
}

impl Tprocc {
    /// `false`: damage, or a run that was cut short.
    pub fn run(self) -> Result<bool> {
        match self {
            Tprocc::Setup(Setup { job, options }) => {
                let ledger = job.ledger("tprocc");
                job.show(|target, progress| tprocc::setup(target, &options, &ledger, progress)).map(|_| true)
            }
            Tprocc::Run(Run { job, options, no_check }) => {
                let run = |target: &Target| tprocc::run(target, &options, &job.ledger("tprocc"));
                job.run(run, (!no_check).then(|| check(&job)))
            }
            Tprocc::Check(job) => job.check(check(&job)),
        }
    }
}

fn check(job: &Job) -> impl FnOnce(&Target, &dyn Progress) -> Result<CheckReport> {
    let ledger = job.ledger("tprocc");
    move |target, progress| tprocc::check(target, &ledger, progress)
}
