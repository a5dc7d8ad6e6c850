//! `twin` and `twin_restart`: what a warm second Redis costs, and how soon it answers when the first one is killed.

mod pair;
mod rate;
mod restart;

use anyhow::Result;
use seawall_load::installed::Tool;

pub use rate::{run as rate, steps as rate_steps};
pub use restart::{run as restart, space as restart_space, steps as restart_steps};

/// Programs that are missing are named before anything is measured.
pub fn find_programs() -> Result<()> {
    crate::redis::program()?;
    Tool::RedisBenchmark.find().map(drop)
}
