//! `seawall report`: one period.

use anyhow::Result;
use seawall_awr::findings::findings;
use seawall_awr::report::document;
use serde_json::json;

use super::{Output, Repo, named_period};
use crate::show;

/// Report what happened between two snapshots
#[derive(clap::Args)]
pub struct Report {
    /// The first snapshot (a number, `first`, `last-1`), or a baseline
    first: String,
    /// The last snapshot (a number, `last`)
    last: Option<String>,
    #[command(flatten)]
    repo: Repo,
    #[command(flatten)]
    output: Output,
}

/// Shows it.
pub fn report(ask: &Report) -> Result<()> {
    let period = named_period(&ask.repo.open()?, &ask.first, ask.last.as_deref())?;
    if ask.output.json {
        return show::json(&json!({ "findings": findings(&period), "period": period }));
    }
    ask.output.write(&document(&period))
}
