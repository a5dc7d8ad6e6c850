//! What `seawall attach` is told.

use std::path::PathBuf;

use super::choice::Goal;
use crate::cache::WantedCache;
use crate::pool::Wanted;
use crate::run::database;

/// Put Seawall permanently under a service of systemd, from its next start on
#[derive(clap::Args)]
pub struct Attach {
    /// The service, for example postgresql@15-main
    pub(super) service: String,
    #[command(flatten)]
    pub(super) wanted: Wanted,
    /// What the data is; without it found by the service's name
    #[arg(long, value_parser = database::presets())]
    pub(super) preset: Option<String>,
    /// tail: the log that commits wait for. atomic: every data file, so that no page can tear. Without it the
    /// one the service has, at first tail
    #[arg(long, value_parser = ["tail", "atomic"])]
    pub(super) policy: Option<String>,
    /// The data directory; without it found in the service's configuration
    #[arg(long)]
    pub(super) data: Option<PathBuf>,
    #[command(flatten)]
    pub(super) cache: WantedCache,
    /// Have no block cache any more
    #[arg(long, conflicts_with = "cache")]
    pub(super) no_cache: bool,
    /// Follow the tables of PostgreSQL that `seawall cache keep` and `none` are told, when they are written anew: a unit of
    /// its own asks the server, as the database's user
    #[arg(long, conflicts_with_all = ["no_cache", "no_follow_tables"])]
    pub(super) follow_tables: bool,
    /// Do not follow tables any more
    #[arg(long)]
    pub(super) no_follow_tables: bool,
    /// Keep checkpoints so near that a crash costs no more than this from the start of the server to its first transaction,
    /// for example 1s (PostgreSQL, MariaDB)
    #[arg(long, value_name = "TIME", conflicts_with = "no_recovery")]
    pub(super) recovery: Option<Goal>,
    /// Keep checkpoints where the server's own settings have them
    #[arg(long)]
    pub(super) no_recovery: bool,
    /// Show what would be written, and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Work on the files of an image below this directory, and ask no systemd
    #[arg(long, value_name = "DIR")]
    pub(super) root: Option<PathBuf>,
    /// JSON instead of text
    #[arg(long)]
    pub(super) json: bool,
}
