//! Databases side by side, as the demo has them: bare file system, Seawall, unsafe bound, and the unsafe bound once more.

mod clusters;
mod relay;
mod samples;
mod sqlite;
mod turns;

pub use clusters::{Clusters, postgres_space, postgres_steps};
pub use relay::{Ran, Relay};
pub use samples::{Samples, Three, ratios};
pub use sqlite::{create_sqlite, measure_sqlite, sqlite_steps};
pub use turns::{Work, in_turns, slices};
