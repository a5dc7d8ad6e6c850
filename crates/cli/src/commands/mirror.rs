//! `seawall mirror`: gives a log on a block device a second copy, or lets it go on without a lost one.

use std::path::{Path, PathBuf};

use anyhow::Result;
use seawall_core::pool as pools;

use crate::{pool, user};

/// Give a log on a block device a second copy, or another one in the place of a lost one. Nobody uses the log meanwhile
#[derive(clap::Args)]
pub struct Mirror {
    /// The log: the copy that is there
    #[arg(long)]
    pool: Option<PathBuf>,
    /// The second copy: a new file on another disk, or another disk or partition, which must be empty
    #[arg(long, value_name = "PATH", required_unless_present = "alone")]
    on: Option<PathBuf>,
    /// Overwrite what the disk or partition holds
    #[arg(long, requires = "on")]
    force: bool,
    /// Go on without the other copy, which is lost for good: what only that one held is given up
    #[arg(long, conflicts_with = "on")]
    alone: bool,
}

/// Does it, and says what was done.
pub fn mirror(how: &Mirror) -> Result<()> {
    let real = pool::existing(how.pool.as_deref())?;
    user::become_owner(&real)?;
    // The other copy is told this one's name as it was given: one that stays.
    let at = how.pool.clone().unwrap_or(real);
    let memory = Path::new(pools::MEMORY);
    let Some(on) = &how.on else {
        pools::block::part_mirror(&at, memory)?;
        println!("{} goes on without its other copy", at.display());
        return Ok(());
    };
    pools::block::join_mirror(&at, on, how.force, memory)?;
    println!("{} is mirrored on {}", at.display(), on.display());
    Ok(())
}
