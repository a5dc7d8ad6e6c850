//! `mount`: what a program gets on a directory of `seawall mount`, against the bare file system and the preload.
//!
//! Every row is a rate, higher is better, on two or three sides that take turns. What is measured: the modules.

mod etcd;
mod files;
mod postgres;
mod row;

use anyhow::{Context, Result};

use super::{Scope, SectionResult};
use crate::lab::Lab;
use crate::table;

pub use etcd::find_programs;
use row::Row;

/// What the section takes on the disk.
pub const SPACE: u64 = 8 << 30;

/// How many steps the section takes.
pub fn steps(scope: Scope) -> usize {
    scope.rounds * (files::steps(scope) + postgres::steps(scope) + etcd::steps(scope))
}

/// The section.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let mut rows = files::measure(lab, scope).context("files on the mount")?;
    rows.extend(postgres::measure(lab, scope).context("PostgreSQL on the mount")?);
    rows.extend(etcd::measure(lab, scope).context("etcd on the mount")?);
    let header = ["On the mount", "bare fs", "mount", "preload", "of bare fs", "of preload"];
    let lines: Vec<_> = rows.iter().map(Row::line).collect();
    let table = format!("{}  mount and preload on: {}\n", table::format(&header, &lines), lab.medium());
    Ok((rows.iter().map(Row::fields).collect(), table))
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::*;
    use crate::side::Side;
    use crate::spread::Spread;

    #[test]
    fn the_keys_are_those_of_the_page_whatever_was_measured() {
        let mut row = Row::new("etcd_put", "1 client".into(), "puts/s");
        row.fields().assert_keys(keys::MOUNT);
        row.rates = [(Side::Fs, vec![100.0, 200.0]), (Side::Mount, vec![300.0, 800.0])].into();
        row.fields().assert_keys(keys::MOUNT);
        assert_eq!(row.of(Side::Fs), Some(Spread { median: 3.5, min: 3.0, max: 4.0 }));
        assert_eq!(row.of(Side::Seawall), None);
    }
}
