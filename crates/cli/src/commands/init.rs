//! `seawall init`: makes a pool.

use std::path::PathBuf;

use anyhow::Result;
use seawall_core::pool;

use crate::{pool as pools, size};

/// Make a pool
#[derive(clap::Args)]
pub struct Init {
    /// Where
    pool: PathBuf,
    /// How large, for example 256M (at least 16M)
    #[arg(long, value_parser = size::parse)]
    size: u64,
    /// Allow memory that does not survive power loss: for trying, testing, measuring
    #[arg(long)]
    emulated: bool,
    /// Replace an existing pool, whatever it holds
    #[arg(long)]
    force: bool,
}

/// Makes it and says what it survives.
pub fn init(how: &Init) -> Result<()> {
    pool::create(&how.pool, how.size, how.emulated, how.force)?;
    let (medium, because) = pools::medium(&how.pool)?;
    println!("made {}, {}", how.pool.display(), size::human(how.size));
    println!("medium: {}\n        ({because})", medium.label());
    Ok(())
}
