//! `replicated`: a log in other hosts' memory, against the bare file system, the unsafe bound, and the bare round trip.
//!
//! Keepers run in network namespaces, on a way that takes its time where a delay is asked for. The round trip is measured
//! in the same rounds, on the same way. Each row says what it had to reach, and whether it did. Databases on such a log:
//! the lab's cases `replicated`, `replicated-redis`, `sqlite-programs` and `slow-disk`.

mod kept;
mod loss;
mod row;
mod write;

use anyhow::Result;

use self::row::{Row, table};
use super::{Scope, SectionResult};
use crate::lab::Lab;

/// Bytes of the log.
pub const POOL: u64 = 512 << 20;

/// How many steps there are.
pub fn steps(scope: Scope) -> usize {
    write::steps(scope) + loss::steps(scope)
}

/// What the sides' files take on the disk.
pub const SPACE: u64 = 8 << 30;

/// Measures everything.
pub fn run(lab: &mut Lab, scope: Scope) -> Result<SectionResult> {
    let mut rows = write::run(lab, scope)?;
    rows.extend(loss::run(lab, scope)?);
    let apart = if lab.identity.is_other() { "network namespaces" } else { "this host, by its loopback" };
    let missed = rows.iter().filter(|row| !row.is_reached()).count();
    let notes = format!("  keepers in {apart}; {missed} of {} targets missed\n", rows.len());
    Ok((rows.iter().map(Row::fields).collect(), table(&rows) + &notes))
}
