//! What is set, on every side or on Seawall's alone.

use crate::side::Preset;

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

/// What a measure sets differently, and how Seawall is asked to look after it.
pub struct Variant {
    /// Equal on every side, over [`SETTINGS`].
    pub settings: &'static [(&'static str, &'static str)],
    /// What is set on Seawall's side alone.
    pub on_seawall: &'static [(&'static str, &'static str)],
    pub preset: Preset,
}

/// The WAL in the log, data files left to the kernel.
pub const TAIL: Variant = Variant { settings: &[], on_seawall: &[], preset: Preset::Postgres };

/// The database pgbench and the ledger live in.
pub const DATABASE: &str = "postgres";
/// The superuser of the clusters.
pub const SUPERUSER: &str = "postgres";
