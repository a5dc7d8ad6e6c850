//! A row: one measure on every side.

use std::collections::BTreeMap;

use crate::bench::fields::Fields;
use crate::compare::ratios;
use crate::lab::Lab;
use crate::side::Side;
use crate::spread::Spread;
use crate::table::{short, thousands};

/// The sides, in the order of the file's keys.
const SIDES: [Side; 4] = [Side::Fs, Side::Mount, Side::Seawall, Side::Unsafe];

/// One measure: what it is called, and each side's figures, one a round.
pub struct Row {
    what: &'static str,
    shape: String,
    unit: &'static str,
    pub rates: BTreeMap<Side, Vec<f64>>,
}

impl Row {
    pub fn new(what: &'static str, shape: String, unit: &'static str) -> Self {
        Self { what, shape, unit, rates: BTreeMap::new() }
    }

    /// Takes the figure of a run whose progress was told already.
    pub fn keep(&mut self, side: Side, rate: f64) {
        self.rates.entry(side).or_default().push(rate);
    }

    pub fn add(&mut self, lab: &Lab, round: usize, side: Side, rate: f64) {
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

    pub fn spread(&self, side: Side) -> Option<Spread> {
        Spread::of(self.rates.get(&side)?)
    }

    /// The mount against another side: the median of the rounds' ratios.
    pub fn of(&self, side: Side) -> Option<Spread> {
        Spread::of(&ratios(self.rates.get(&Side::Mount)?, self.rates.get(&side)?))
    }

    pub fn fields(&self) -> Fields {
        let row = Fields::default().with("what", self.what).with("shape", self.shape.as_str());
        let row = SIDES.iter().fold(row.with("unit", self.unit), |row, &side| {
            row.with_spread_if_any(name(side), self.spread(side))
        });
        [("of_fs", Side::Fs), ("of_preload", Side::Seawall), ("of_unsafe", Side::Unsafe)]
            .into_iter()
            .fold(row, |row, (name, side)| row.with_spread_if_any(name, self.of(side)))
    }

    pub fn line(&self) -> Vec<String> {
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
