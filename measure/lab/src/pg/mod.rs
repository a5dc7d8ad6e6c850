//! PostgreSQL, as each side runs it: one template cluster, a copy for each side, pgbench.

mod cluster;
mod pgbench;
mod settings;
mod template;
pub mod transactions;

pub use cluster::{Cluster, Launch, log_tail, try_bare_start};
pub use pgbench::{Bench, Test, check_work};
pub use settings::{DATABASE, SETTINGS, SUPERUSER, TAIL, Variant};
pub use template::Template;
