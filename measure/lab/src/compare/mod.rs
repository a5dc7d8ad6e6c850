//! Databases side by side: bare file system, Seawall, unsafe bound, and for benchmarks the unsafe bound once
//! more. Demo and bench share this.

mod clusters;
mod relay;
mod samples;
mod sqlite;
mod turns;

pub use clusters::{Clusters, postgres_space, postgres_steps};
pub use relay::{End, Ran, Relay};
pub use samples::{Samples, Three, ratios};
pub use sqlite::{create_sqlite, measure_sqlite, sqlite_steps};
pub use turns::{Turns, Work, in_turns, rates, slices, steps};
