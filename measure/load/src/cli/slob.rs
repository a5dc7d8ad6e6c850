//! `seawall-load slob …`

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use seawall_load::progress::Progress;
use seawall_load::slob::{self, CommitMode, Conf, RunOptions};
use seawall_load::sys;
use seawall_load::target::TargetOptions;

use super::output::show;
use super::progress::Shown;

/// The SLOB method
#[derive(Subcommand)]
pub enum Slob {
    /// Make and load the tables, and begin the ledger
    Setup(Common),
    /// Put load on them
    Run(Run),
    /// Read every row and compare with the ledger: nothing torn, nothing lost
    Check(Check),
}

/// What all of them take.
#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    target: TargetOptions,
    /// Where acknowledged updates are noted: outside the database, and not on a disk whose power is to be cut
    #[arg(long, default_value = "slob.ledger")]
    ledger: PathBuf,
    /// Results as JSON
    #[arg(long)]
    json: bool,
}

/// What setup and run take.
#[derive(Args)]
pub struct Common {
    #[command(flatten)]
    check: Check,
    /// A `slob.conf` with SLOB's parameters by their own names [default: SLOB's defaults]
    #[arg(long, value_name = "FILE")]
    conf: Option<PathBuf>,
    /// Sets one parameter over the file's: --set SCALE=200M
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = pair)]
    settings: Vec<(String, String)>,
    /// Schemas (`-s` of SLOB's scripts)
    #[arg(long, short = 's', default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    schemas: u32,
    /// Sessions of each schema (`-t` of SLOB's scripts) [default: THREADS_PER_SCHEMA]
    #[arg(long, short = 't', value_parser = clap::value_parser!(u32).range(1..=0xffff))]
    threads: Option<u32>,
    /// Size of each schema's table [default: SCALE]
    #[arg(long)]
    scale: Option<String>,
}

/// Options of a run.
#[derive(Args)]
pub struct Run {
    #[command(flatten)]
    common: Common,
    /// When sessions wait for durability
    #[arg(long, value_enum, default_value_t = CommitMode::PerOperation)]
    commit: CommitMode,
    /// An open loop: operations a second, all sessions together; latencies count from the intended start
    #[arg(long)]
    rate: Option<f64>,
    /// Check all rows afterwards, as `slob check` does
    #[arg(long = "check")]
    check_after: bool,
}

impl Slob {
    /// `false`: damage, or a run that was cut short.
    pub fn run(self) -> Result<bool> {
        match self {
            Slob::Setup(common) => common.setup().map(|()| true),
            Slob::Run(run) => run.run(),
            Slob::Check(check) => check.run(),
        }
    }
}

impl Common {
    fn setup(&self) -> Result<()> {
        let progress = Shown::new();
        let conf = self.conf(&progress)?;
        let report = slob::setup(&self.check.target.target()?, &conf, &self.check.ledger, &progress)?;
        drop(progress);
        show(&report, self.check.json)
    }

    /// The file's parameters, then those of the command line.
    fn conf(&self, progress: &dyn Progress) -> Result<Conf> {
        let read = self.conf.as_deref().map(Conf::load).transpose()?.unwrap_or_default();
        read.warnings.iter().for_each(|warning| progress.note(&format!("slob.conf: {warning}")));
        let mut conf = read.conf;
        conf.schemas = self.schemas;
        for (key, value) in &self.settings {
            conf.set(key, value)?;
        }
        if let Some(scale) = &self.scale {
            conf.set("SCALE", scale)?;
        }
        conf.threads_per_schema = self.threads.unwrap_or(conf.threads_per_schema);
        Ok(conf)
    }
}

impl Run {
    fn run(&self) -> Result<bool> {
        let progress = Shown::new();
        let conf = self.common.conf(&progress)?;
        drop(progress);
        let check = &self.common.check;
        let options = RunOptions { commit: self.commit, rate: self.rate, ledger: check.ledger.clone() };
        sys::catch_interrupts();
        let outcome = slob::run(&check.target.target()?, &conf, &options)?;
        show(&outcome, check.json)?;
        if !self.check_after || !outcome.is_whole() {
            return Ok(outcome.is_whole());
        }
        // Standard output has the run's result.
        let report = slob::check(&check.target.target()?, &check.ledger, &())?;
        eprintln!("{report}");
        Ok(report.is_clean())
    }
}

impl Check {
    fn run(&self) -> Result<bool> {
        let progress = Shown::new();
        let report = slob::check(&self.target.target()?, &self.ledger, &progress)?;
        drop(progress);
        show(&report, self.json)?;
        Ok(report.is_clean())
    }
}

fn pair(text: &str) -> Result<(String, String)> {
    let (key, value) = text.split_once('=').context("must be KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}
