//! `mount`: what a program gets on files of a directory of `seawall mount`, against the bare file system and the preload.
//!
//! Every row is a rate, higher is better, on two or three sides that take turns. Databases on a mount: the lab's cases
//! `mount` and `etcd`.

mod files;
mod row;

use anyhow::Result;

pub use self::files::steps;

use self::row::Row;
use super::{Scope, SectionResult};
use crate::lab::Lab;
use crate::table;

/// What the section takes on the disk.
pub const SPACE: u64 = 6 << 30;

/// The section.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let rows = files::measure(lab, scope)?;
    let header = ["On the mount", "bare fs", "mount", "preload", "of bare fs", "of preload"];
    let lines: Vec<_> = rows.iter().map(Row::line).collect();
    let table = format!("{}  mount and preload on: {}\n", table::format(&header, &lines), lab.medium());
    Ok((rows.iter().map(Row::fields).collect(), table))
}
