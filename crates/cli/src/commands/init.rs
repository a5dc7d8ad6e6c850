//! `seawall init`: makes a pool.

use std::path::PathBuf;

use anyhow::{Result, bail};
use seawall_core::pool;
use seawall_daemon::kept::{self, Mode};

use crate::{pool as pools, size};

/// Make a pool
#[derive(clap::Args)]
pub struct Init {
    /// Where
    pool: PathBuf,
    /// How large, for example 256M (at least 16M). On a block device, where it need not be given, three times as
    /// much lies there
    #[arg(long, value_parser = size::parse, required_unless_present = "block")]
    size: Option<u64>,
    /// On a block device: a new file on a disk, or a disk or partition, which must be empty
    #[arg(long, conflicts_with_all = ["emulated", "spill"])]
    block: bool,
    /// With --block: a second copy of the log, on another device, so that the log survives the loss of one
    #[arg(long, value_name = "PATH", requires = "block")]
    mirror: Option<PathBuf>,
    /// In memory, with copies that keepers on other hosts keep (`seawall keeper serve`): HOST:PORT, several times
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["emulated", "spill", "block", "force"])]
    keeper: Vec<String>,
    /// With --keeper: how many of them confirm a commit before it is acknowledged; without it more than half
    #[arg(long, requires = "keeper")]
    acks: Option<usize>,
    /// With --keeper: what commits do while too few are reached. protection: wait, and fail after 30 seconds. availability:
    /// after five seconds they are made durable on this host's own disk, until enough are reached again
    #[arg(long, requires = "keeper", value_name = "MODE", value_parser = mode)]
    mode: Option<Mode>,
    #[command(flatten)]
    security: super::keeper::Security,
    #[command(flatten)]
    spill: pools::Spill,
    /// Allow memory that does not survive power loss: for trying, testing, measuring
    #[arg(long)]
    emulated: bool,
    /// Replace an existing pool, whatever it holds
    #[arg(long)]
    force: bool,
}

fn make_kept(how: &Init, size: u64) -> Result<()> {
    let acks = how.acks.unwrap_or(how.keeper.len() / 2 + 1);
    let mode = how.mode.unwrap_or_default();
    Ok(kept::create(&how.pool, size, &how.keeper, acks, how.security.transport()?, mode)?)
}

fn mode(text: &str) -> Result<Mode> {
    match text {
        "protection" => Ok(Mode::Protection),
        "availability" => Ok(Mode::Availability),
        _ => bail!("protection or availability"),
    }
}

/// Makes it and says what it survives.
pub fn init(how: &Init) -> Result<()> {
    if how.keeper.is_empty() && !how.security.transport()?.is_default() {
        bail!("--tls and --clear-text say how keepers are reached, and there are none (--keeper HOST:PORT)");
    }
    match how.size.filter(|_| !how.block) {
        Some(size) if !how.keeper.is_empty() => make_kept(how, size)?,
        Some(size) => {
            let area = how.spill.plan(size);
            pool::create_with_area(&how.pool, size, how.emulated, how.force, area.as_ref())?;
        }
        None => pools::make_block(&how.pool, how.size, how.force, how.mirror.as_deref())?,
    }
    let (medium, because) = pools::medium(&how.pool)?;
    outln!("made {}, {}", how.pool.display(), pools::how_large(&how.pool)?);
    outln!("medium: {}\n        ({because})", medium.label());
    Ok(())
}
