//! `snap`, `snaps`, `report`, `compare`: what the database, its log and its machine did.

pub mod compare;
pub mod report;
pub mod snap;
pub mod snaps;
mod terminal;
pub mod top;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use seawall_awr::Repository;
use seawall_awr::period::Period;
use seawall_page::{Document, html, text};

use crate::user;

/// Where snapshots are kept.
#[derive(clap::Args)]
pub struct Repo {
    /// The repository [default: /var/lib/seawall/snapshots.db for root, else below your data directory]
    #[arg(long, value_name = "FILE", global = true)]
    repo: Option<PathBuf>,
}

impl Repo {
    fn path(&self) -> PathBuf {
        self.repo.clone().unwrap_or_else(|| user::state_directory().join("snapshots.db"))
    }

    fn open(&self) -> Result<Repository> {
        Ok(Repository::open(&self.path())?)
    }
}

/// How a report is shown.
#[derive(clap::Args)]
pub struct Output {
    /// Write one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// JSON instead of text
    #[arg(long, conflicts_with = "html")]
    json: bool,
}

impl Output {
    fn write(&self, document: &Document) -> Result<()> {
        match &self.html {
            Some(path) => {
                std::fs::write(path, html(document))
                    .with_context(|| format!("cannot write {}", path.display()))?;
                outln!("{}", path.display());
            }
            None => out!("{}", text(document)),
        }
        Ok(())
    }
}

/// The period between two snapshots.
fn period(repository: &Repository, first: i64, last: i64) -> Result<Period> {
    let chain = repository.chain(first, last)?;
    let samples = repository.samples_between(&chain)?;
    // `chain` has snapshots of the first one's target only.
    let last_of_target = chain.last().map(|s| s.id);
    if last_of_target != Some(last) {
        anyhow::bail!(
            "the snapshots {first} and {last} are of different databases, or the later one came first: `seawall snaps` \
             lists them; `seawall compare` takes periods of different databases"
        );
    }
    Ok(Period::of(&chain, &samples)?)
}

/// The period that one or two words name: two snapshots, or a baseline.
fn named_period(repository: &Repository, first: &str, last: Option<&str>) -> Result<Period> {
    let (first, last) = match last {
        Some(last) => (repository.resolve(first)?, repository.resolve(last)?),
        None => {
            let baseline = repository.baseline(first)?;
            (baseline.first, baseline.last)
        }
    };
    period(repository, first, last)
}

/// A file to write, or standard output.
fn sink(path: Option<&Path>) -> Result<Box<dyn Write>> {
    Ok(match path {
        Some(path) => Box::new(std::io::BufWriter::new(
            std::fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?,
        )),
        None => Box::new(std::io::stdout().lock()),
    })
}
