//! `seawall snaps`: what is in the repository; baselines, export, import, retention.

use std::io::BufReader;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use seawall_awr::{Baseline, clock};
use serde_json::json;

use super::{Repo, sink};
use crate::{show, time};

/// List snapshots; baselines, export, import, prune
#[derive(clap::Args)]
pub struct Snaps {
    #[command(flatten)]
    repo: Repo,
    /// JSON instead of text
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(clap::Subcommand)]
enum What {
    /// List snapshots
    List,
    /// Name a period, and keep it for ever under that name; without a name: list the baselines
    Baseline {
        /// The name
        #[arg(requires = "first")]
        name: Option<String>,
        /// The first snapshot
        #[arg(requires = "last")]
        first: Option<String>,
        /// The last
        last: Option<String>,
        /// Forget this name
        #[arg(long, conflicts_with = "name")]
        remove: Option<String>,
    },
    /// Write snapshots and samples as lines of JSON
    Export {
        /// The first snapshot
        #[arg(default_value = "first")]
        first: String,
        /// The last
        #[arg(default_value = "last")]
        last: String,
        /// Where to write; without it standard output
        #[arg(long, short)]
        output: Option<PathBuf>,
    },
    /// Add the content of an export
    Import {
        /// The export
        file: PathBuf,
    },
    /// Drop snapshots that are older than this and in no baseline
    Prune {
        /// Older than this: 30d
        #[arg(long, value_parser = time::period)]
        keep: Duration,
    },
}

/// Does it.
pub fn snaps(ask: &Snaps) -> Result<()> {
    match &ask.what {
        None | Some(What::List) => list(ask),
        Some(What::Baseline { remove: Some(name), .. }) => Ok(ask.repo.open()?.remove_baseline(name)?),
        Some(What::Baseline { name: Some(name), first: Some(first), last: Some(last), .. }) => {
            let mut repository = ask.repo.open()?;
            let (first, last) = (repository.resolve(first)?, repository.resolve(last)?);
            // A name for what is no period would only fail later.
            super::period(&repository, first, last)?;
            Ok(repository.put_baseline(&Baseline { name: name.clone(), first, last })?)
        }
        Some(What::Baseline { .. }) => baselines(ask),
        Some(What::Export { first, last, output }) => export(ask, first, last, output.as_deref()),
        Some(What::Import { file }) => import(ask, file),
        Some(What::Prune { keep }) => prune(ask, *keep),
    }
}

fn list(ask: &Snaps) -> Result<()> {
    let entries = ask.repo.open()?.list()?;
    if ask.json {
        return show::json(&entries);
    }
    let row = |e: &seawall_awr::SnapshotSummary| {
        vec![e.id.to_string(), clock::utc(e.wall_ms), e.target.clone(), e.label.clone()]
    };
    show::table(&["snapshot", "taken (UTC)", "of", "label"], &entries.iter().map(row).collect::<Vec<_>>());
    Ok(())
}

fn baselines(ask: &Snaps) -> Result<()> {
    let all = ask.repo.open()?.baselines()?;
    if ask.json {
        return show::json(&all);
    }
    let row = |b: &Baseline| vec![b.name.clone(), b.first.to_string(), b.last.to_string()];
    show::table(&["baseline", "first", "last"], &all.iter().map(row).collect::<Vec<_>>());
    Ok(())
}

fn export(ask: &Snaps, first: &str, last: &str, output: Option<&std::path::Path>) -> Result<()> {
    let repository = ask.repo.open()?;
    let (first, last) = (repository.resolve(first)?, repository.resolve(last)?);
    let mut to = sink(output)?;
    let count = repository.export(first, last, &mut to)?;
    to.flush().context("cannot write the export")?;
    if let Some(path) = output {
        outln!("{count} snapshots in {}", path.display());
    }
    Ok(())
}

fn import(ask: &Snaps, file: &std::path::Path) -> Result<()> {
    let from = std::fs::File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    let mut repository = seawall_awr::Repository::open_or_create(&ask.repo.path())?;
    let imported = repository.import(BufReader::new(from)).with_context(|| file.display().to_string())?;
    if ask.json {
        return show::json(&imported);
    }
    outln!("{} snapshots are new, {} were here already", imported.snapshots, imported.known);
    Ok(())
}

fn prune(ask: &Snaps, keep: Duration) -> Result<()> {
    let pruned = ask.repo.open()?.prune(clock::wall_ms() - keep.as_millis() as i64)?;
    if ask.json {
        return show::json(&json!(pruned));
    }
    outln!("{} snapshots and {} samples dropped", pruned.snapshots, pruned.samples);
    Ok(())
}
