//! `seawall-load slob …`

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use seawall_load::progress::Progress;
use seawall_load::slob::{self, CheckReport, Conf, Outcome, RunOptions};
use seawall_load::target::Target;

use super::job::{Job, Judged};
use super::progress::Shown;

/// The SLOB method
#[derive(Subcommand)]
pub enum Slob {
    /// Make and load the tables, and begin the ledger
    Setup(Common),
    /// Put load on them
    Run(Run),
    /// Read every row and compare with the ledger: nothing torn, nothing lost
    Check(Job),
}

/// What setup and run take.
#[derive(Args)]
pub struct Common {
    #[command(flatten)]
    job: Job,
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
    #[command(flatten)]
    options: RunOptions,
    /// Check all rows afterwards, as `slob check` does
    #[arg(long = "check")]
    check_after: bool,
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

impl Slob {
    /// `false`: damage, or a run that was cut short.
    pub fn run(self) -> Result<bool> {
        match self {
            Slob::Setup(common) => common.setup().map(|()| true),
            Slob::Run(run) => run.run(),
            Slob::Check(job) => job.check(check(&job)),
        }
    }
}

fn check(job: &Job) -> impl FnOnce(&Target, &dyn Progress) -> Result<CheckReport> {
    let ledger = job.ledger("slob");
    move |target, progress| slob::check(target, &ledger, progress)
}

impl Common {
    fn setup(&self) -> Result<()> {
        let setup = |target: &Target, progress: &dyn Progress| {
            slob::setup(target, &self.conf(progress)?, &self.job.ledger("slob"), progress)
        };
        self.job.show(setup).map(drop)
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
        let Common { job, .. } = &self.common;
        let conf = self.common.conf(&Shown::new())?;
        let run = |target: &Target| slob::run(target, &conf, &self.options, &job.ledger("slob"));
        job.run(run, self.check_after.then(|| check(job)))
    }
}

fn pair(text: &str) -> Result<(String, String)> {
    let (key, value) = text.split_once('=').context("must be KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}
