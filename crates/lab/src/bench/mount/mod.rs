//! `mount`: what a program gets on a directory of `seawall mount`, against the bare file system and the preload.
//!
//! Every row is a rate, higher is better, on two or three sides that take turns. What is measured: the modules.

mod etcd;
mod files;
mod postgres;

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::{Fields, Scope, SectionResult};
use crate::compare::ratios;
use crate::lab::Lab;
use crate::side::Side;
use crate::spread::Spread;
use crate::table::{self, short, thousands};

pub use etcd::find_programs;

/// What the section takes on the disk.
pub const SPACE: u64 = 8 << 30;

/// The sides, in the order of the file's keys.
const SIDES: [Side; 4] = [Side::Fs, Side::Mount, Side::Seawall, Side::Unsafe];

/// One measure: what it is called, and each side's figures, one a round.
struct Row {
    what: &'static str,
    shape: String,
    unit: &'static str,
    rates: BTreeMap<Side, Vec<f64>>,
}

impl Row {
    fn new(what: &'static str, shape: String, unit: &'static str) -> Self {
        Self { what, shape, unit, rates: BTreeMap::new() }
    }

    /// Takes the figure of a run whose progress was told already.
    fn keep(&mut self, side: Side, rate: f64) {
        self.rates.entry(side).or_default().push(rate);
    }

    fn add(&mut self, lab: &Lab, round: usize, side: Side, rate: f64) {
        self.keep(side, rate);
        let (what, shape) = (self.what, &self.shape);
        lab.progress.done(&format!(
            "round {}: {what}, {shape}, {}: {} {}",
            round + 1,
            side.title(),
            short(rate),
            self.unit
        ));
    }

    fn spread(&self, side: Side) -> Option<Spread> {
        Spread::of(self.rates.get(&side)?)
    }

    /// The mount against another side: the median of the rounds' ratios.
    fn of(&self, side: Side) -> Option<Spread> {
        Spread::of(&ratios(self.rates.get(&Side::Mount)?, self.rates.get(&side)?))
    }

    fn fields(&self) -> Fields {
        let row = Fields::default().with("what", self.what).with("shape", self.shape.as_str());
        let row = SIDES.iter().fold(row.with("unit", self.unit), |row, &side| {
            row.with_spread_if_any(name(side), self.spread(side))
        });
        [("of_fs", Side::Fs), ("of_preload", Side::Seawall), ("of_unsafe", Side::Unsafe)]
            .into_iter()
            .fold(row, |row, (name, side)| row.with_spread_if_any(name, self.of(side)))
    }

    fn line(&self) -> Vec<String> {
        let cell = |spread: Option<Spread>, word: fn(f64) -> String| {
            spread.map_or("–".to_owned(), |s| s.told(word))
        };
        let sides = [Side::Fs, Side::Mount, Side::Seawall].map(|side| cell(self.spread(side), thousands));
        let ratios = [Side::Fs, Side::Seawall].map(|side| cell(self.of(side), short));
        [format!("{}, {}, {}", self.what, self.shape, self.unit)]
            .into_iter()
            .chain(sides)
            .chain(ratios)
            .collect()
    }
}

/// A side's name in the file.
fn name(side: Side) -> &'static str {
    match side {
        Side::Mount => "mount",
        Side::Seawall => "preload",
        Side::Fs => "fs",
        Side::Unsafe | Side::Eatmydata | Side::Control => "unsafe",
    }
}

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
