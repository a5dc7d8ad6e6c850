//! The arguments of `seawall attach`.

use std::path::PathBuf;

use super::choice::Goal;
use crate::cache::WantedCache;
use crate::pool::Wanted;
use crate::run::database;

/// Put Seawall permanently under a systemd service, from its next start on
#[derive(clap::Args)]
pub struct Attach {
    /// The service, for example postgresql@15-main
    pub(super) service: String,
    #[command(flatten)]
    pub(super) wanted: Wanted,
    /// The kind of database; found by the service's name if not given
    #[arg(long, value_parser = database::presets())]
    pub(super) preset: Option<String>,
    /// tail: the log that commits wait for. atomic: every data file, so that no page can tear. Without it the policy
    /// that the service already has, or tail
    #[arg(long, value_parser = ["tail", "atomic"])]
    pub(super) policy: Option<String>,
    /// The data directory; found in the service's configuration if not given
    #[arg(long)]
    pub(super) data: Option<PathBuf>,
    #[command(flatten)]
    pub(super) cache: WantedCache,
    /// Remove the block cache
    #[arg(long, conflicts_with = "cache")]
    pub(super) no_cache: bool,
    /// Follow the PostgreSQL tables chosen with `seawall cache keep` and `none` when they are rewritten: a unit of its
    /// own asks the server, as the database's user
    #[arg(long, conflicts_with_all = ["no_cache", "no_follow_tables"])]
    pub(super) follow_tables: bool,
    /// Stop following tables
    #[arg(long)]
    pub(super) no_follow_tables: bool,
    /// Take checkpoints often enough that after a crash the time from the start of the server to its first transaction
    /// is no longer than this, for example 1s (PostgreSQL, MariaDB)
    #[arg(long, value_name = "TIME", conflicts_with = "no_recovery")]
    pub(super) recovery: Option<Goal>,
    /// Leave checkpoints to the server's own settings
    #[arg(long)]
    pub(super) no_recovery: bool,
    /// Show what would be written, and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Work on the files of an image below this directory, and do not call systemd
    #[arg(long, value_name = "DIR")]
    pub(super) root: Option<PathBuf>,
    /// JSON instead of text
    #[arg(long)]
    pub(super) json: bool,
}
