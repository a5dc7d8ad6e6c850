//! A row: what was measured, what it is compared with, what it had to reach, and whether it did.

use super::super::Fields;
use crate::keepers::Shape;
use crate::spread::Spread;
use crate::table::{self, short};

/// What a result is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

/// A figure of a log that keepers keep.
pub struct Row {
    /// What was measured: one word.
    pub what: &'static str,
    /// Of which load.
    pub load: String,
    pub shape: Shape,
    /// To one keeper, ends blocking and spinning; to all of them, until enough have answered. Microseconds.
    pub round_trip: Option<[Spread; 3]>,
    /// The figure, and its unit.
    pub seawall: Spread,
    pub unit: &'static str,
    /// What it is compared with, and its figure.
    pub other: Option<(&'static str, Spread)>,
    /// What the target is about: see the keys.
    pub result: Spread,
    pub target: Target,
}

impl Row {
    /// Whether the median reaches its target.
    pub fn is_reached(&self) -> bool {
        match self.target {
            Target::AtLeast(least) => self.result.median >= least,
            Target::AtMost(most) => self.result.median <= most,
        }
    }

    pub fn fields(&self) -> Fields {
        let (is, target) = match self.target {
            Target::AtLeast(n) => ("at least", n),
            Target::AtMost(n) => ("at most", n),
        };
        let [blocking, spinning, of_all] = match self.round_trip {
            Some(all) => all.map(Some),
            None => [None; 3],
        };
        Fields::default()
            .with("what", self.what)
            .with("load", self.load.as_str())
            .with("keepers", self.shape.keepers)
            .with("acks", self.shape.acks)
            .with("delay_us", self.shape.delay.as_micros() as u64)
            .with_spread("round_trip_us", blocking)
            .with_spread("round_trip_spinning_us", spinning)
            .with_spread("round_trip_of_all_us", of_all)
            .with("unit", self.unit)
            .with_spread("seawall", self.seawall)
            .with("against", self.other.map_or("", |(name, _)| name))
            .with_spread("other", self.other.map(|(_, figure)| figure))
            .with_spread("result", self.result)
            .with("target_is", is)
            .with("target", target)
            .with("reached", self.is_reached())
    }

    fn line(&self) -> Vec<String> {
        let (is, target) = match self.target {
            Target::AtLeast(n) => ("≥", n),
            Target::AtMost(n) => ("≤", n),
        };
        let Shape { keepers, acks, delay } = self.shape;
        vec![
            self.what.to_owned(),
            self.load.clone(),
            format!("{acks} of {keepers}"),
            delay.as_micros().to_string(),
            format!("{} {}", self.seawall.told(short), self.unit),
            self.other.map_or_else(String::new, |(name, figure)| format!("{name} {}", figure.told(short))),
            self.result.told(short),
            format!("{is} {}", short(target)),
            if self.is_reached() { "reached" } else { "MISSED" }.to_owned(),
        ]
    }
}

/// For people.
pub fn table(rows: &[Row]) -> String {
    let header = ["replicated", "load", "confirm", "delay µs", "seawall", "against", "result", "target", ""];
    table::format(&header, &rows.iter().map(Row::line).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(target: Target) -> Row {
        Row {
            what: "write",
            load: "a load".to_owned(),
            shape: Shape::of(3, 0),
            round_trip: None,
            seawall: Spread::ONE,
            unit: "a second",
            other: Some(("bare", Spread::ONE)),
            result: Spread::ONE,
            target,
        }
    }

    #[test]
    fn the_keys_are_those_of_the_page() {
        row(Target::AtMost(1.0)).fields().assert_keys("replicated");
    }

    #[test]
    fn a_target_that_is_missed_is_said_to_be() {
        let reached = [Target::AtLeast(1.0), Target::AtLeast(1.1), Target::AtMost(1.0), Target::AtMost(0.9)]
            .map(|target| row(target).is_reached());
        assert_eq!(reached, [true, false, true, false]);
        assert!(table(&[row(Target::AtLeast(2.0))]).contains("MISSED"));
    }
}
