//! `seawall compare`: two periods.

use anyhow::{Result, bail};
use seawall_awr::compare::{Known, compare as pair, document};

use super::{Output, Repo, named_period};
use crate::show;

/// Compare two periods: four snapshots, or two baselines
#[derive(clap::Args)]
pub struct Compare {
    /// FIRST LAST FIRST LAST (snapshots), or BASELINE BASELINE
    #[arg(num_args = 2..=4, required = true)]
    periods: Vec<String>,
    /// By how many percent repeated runs of one configuration differ, if you know it
    #[arg(long, value_name = "PERCENT")]
    spread: Option<f64>,
    #[command(flatten)]
    repo: Repo,
    #[command(flatten)]
    output: Output,
}

/// Shows it.
pub fn compare(ask: &Compare) -> Result<()> {
    let repository = ask.repo.open()?;
    let (first, second) = match ask.periods.as_slice() {
        [a, b, c, d] => (named_period(&repository, a, Some(b))?, named_period(&repository, c, Some(d))?),
        [a, b] => (named_period(&repository, a, None)?, named_period(&repository, b, None)?),
        _ => bail!("compare takes four snapshots (the first and last of each period) or two baselines"),
    };
    let comparison = pair(first, second, Known { spread_percent: ask.spread });
    if ask.output.json {
        return show::json(&comparison);
    }
    ask.output.write(&document(&comparison))
}
