//! `seawall init`: makes a pool.

use std::path::PathBuf;

use anyhow::{Result, bail};
use seawall_core::pool;

use crate::{pool as pools, size};

/// Make a pool
#[derive(clap::Args)]
pub struct Init {
    /// Where to make it
    pool: PathBuf,
    /// Its size, for example 256M (at least 16M). On a block device it takes three times as much, and the size need not
    /// be given
    #[arg(long, value_parser = size::parse, required_unless_present = "block")]
    size: Option<u64>,
    /// Make it on a block device: a new file on a disk, or a disk or partition, which must be empty
    #[arg(long, conflicts_with_all = ["emulated", "spill"])]
    block: bool,
    /// With --block: a second copy of the log, on another device, so that the log survives the loss of one
    #[arg(long, value_name = "PATH", requires = "block")]
    mirror: Option<PathBuf>,
    #[command(flatten)]
    keepers: pools::Keepers,
    #[command(flatten)]
    spill: pools::Spill,
    /// Allow memory that does not survive power loss: for trying out, testing, measuring
    #[arg(long)]
    emulated: bool,
    /// Replace an existing pool, whatever it holds
    #[arg(long)]
    force: bool,
}

/// Makes it and says what it survives.
pub fn init(how: &Init) -> Result<()> {
    how.keepers.check()?;
    if how.force && !how.keepers.is_empty() {
        bail!("a log that keepers keep cannot replace a file: choose another path, or leave --force out");
    }
    match how.size.filter(|_| !how.block) {
        Some(size) if !how.keepers.is_empty() => how.keepers.make(&how.pool, size)?,
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
