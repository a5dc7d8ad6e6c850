//! PostgreSQL, as each side runs it: one template cluster, a copy for each side, pgbench.

mod cluster;
mod pgbench;
mod template;

pub use cluster::{Cluster, try_bare_start};
pub use pgbench::{Bench, Measured, Test, check_work};
pub use template::Template;

/// Settings equal on every side. Checkpoints happen only when the lab asks for one (before each run):
/// short runs would otherwise measure which side happened to be hit by one.
pub const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", ""),
    ("shared_buffers", "384MB"),
    ("max_wal_size", "4GB"),
    ("min_wal_size", "1GB"),
    ("checkpoint_timeout", "1h"),
    ("autovacuum", "off"),
    ("synchronous_commit", "on"),
    ("full_page_writes", "on"),
    ("max_connections", "50"),
    ("logging_collector", "off"),
];

/// The database pgbench and the ledger live in.
pub const DATABASE: &str = "postgres";
/// The superuser of the clusters.
pub const SUPERUSER: &str = "postgres";
