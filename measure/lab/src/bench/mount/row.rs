//! A row: one measure on every side.

use crate::bench::fields::Fields;
use crate::bench::runs::{Runs, told};
use crate::lab::Lab;
use crate::side::Side;
use crate::spread::Spread;
use crate::table::short;

/// One measure: what it is called, and each side's figures, one a round.
pub struct Row {
    what: &'static str,
    shape: String,
    unit: &'static str,
    pub rates: Runs<Side, f64>,
}

impl Row {
    pub fn new(what: &'static str, shape: String, unit: &'static str) -> Self {
        Self { what, shape, unit, rates: Runs::default() }
    }

    pub fn add(&mut self, lab: &Lab, round: usize, side: Side, rate: f64) {
        self.rates.add(side, rate);
        let (what, shape, unit) = (self.what, &self.shape, self.unit);
        let title = format!("round {}: {what}, {shape}, {}", round + 1, side.title());
        lab.progress.done(&format!("{title}: {} {unit}", short(rate)));
    }

    /// The mount against another side: the median of the rounds' ratios.
    fn of(&self, side: Side) -> Option<Spread> {
        self.rates.ratio(Side::Mount, side, |rate| *rate)
    }

    pub fn fields(&self) -> Fields {
        let rate = |side| self.rates.spread(side, |rate| *rate);
        Fields::default()
            .with("what", self.what)
            .with("shape", self.shape.as_str())
            .with("unit", self.unit)
            .with_spread("fs", rate(Side::Fs))
            .with_spread("mount", rate(Side::Mount))
            .with_spread("preload", rate(Side::Seawall))
            .with_spread("of_fs", self.of(Side::Fs))
            .with_spread("of_preload", self.of(Side::Seawall))
    }

    pub fn line(&self) -> Vec<String> {
        let mut line = vec![format!("{}, {}, {}", self.what, self.shape, self.unit)];
        line.extend([Side::Fs, Side::Mount, Side::Seawall].map(|side| self.rates.told(side, |rate| *rate)));
        line.extend([Side::Fs, Side::Seawall].map(|side| told(self.of(side))));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page_whatever_was_measured() {
        let mut row = Row::new("cached_read", "8 KiB random".into(), "reads/s");
        row.fields().assert_keys("mount");
        for (side, rate) in [(Side::Fs, 100.0), (Side::Mount, 300.0), (Side::Fs, 200.0), (Side::Mount, 800.0)]
        {
            row.rates.add(side, rate);
        }
        row.fields().assert_keys("mount");
        assert_eq!(row.of(Side::Fs), Some(Spread { median: 3.5, min: 3.0, max: 4.0 }));
        assert_eq!(row.of(Side::Seawall), None);
    }
}
