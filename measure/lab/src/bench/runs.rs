//! Runs by side, one a round, and what they say of a figure.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::Fields;
use crate::compare::ratios;
use crate::lab::Lab;
use crate::side::order;
use crate::spread::Spread;
use crate::table::short;

/// A figure's name in the file, and how it is read from a run.
pub type Figure<T> = (&'static str, fn(&T) -> f64);

/// The runs `T` of each side `S`, in the order of the rounds.
pub struct Runs<S, T>(BTreeMap<S, Vec<T>>);

impl<S, T> Default for Runs<S, T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<S: Copy + Ord, T> Runs<S, T> {
    /// Runs every side in every round, in balanced [`order`]; each run is a step of progress.
    ///
    /// `title` says of a side what is measured, `told` of a run what came out.
    pub fn measure(
        lab: &Lab,
        sides: &[S],
        rounds: usize,
        title: impl Fn(S) -> String,
        told: impl Fn(&T) -> String,
        mut run: impl FnMut(S, usize) -> Result<T>,
    ) -> Result<Self> {
        let mut runs = Self::default();
        for round in 0..rounds {
            for side in order(sides, round) {
                let what = format!("round {}: {}", round + 1, title(side));
                lab.progress.doing(&what);
                let found = run(side, round).with_context(|| what.clone())?;
                lab.progress.done(&format!("{what}: {}", told(&found)));
                runs.add(side, found);
            }
        }
        Ok(runs)
    }

    /// Adds one round's run.
    pub fn add(&mut self, side: S, run: T) {
        self.0.entry(side).or_default().push(run);
    }

    fn values(&self, side: S, figure: impl Fn(&T) -> f64) -> Vec<f64> {
        self.0.get(&side).into_iter().flatten().map(figure).collect()
    }

    /// A figure's spread over the rounds of a side, if that was measured.
    pub fn spread(&self, side: S, figure: impl Fn(&T) -> f64) -> Option<Spread> {
        Spread::of(&self.values(side, figure))
    }

    /// Its median; not a number where the side was not measured.
    pub fn median(&self, side: S, figure: impl Fn(&T) -> f64) -> f64 {
        self.spread(side, figure).map_or(f64::NAN, |spread| spread.median)
    }

    /// A figure of one side over that of another one, round by round.
    pub fn ratio(&self, over: S, under: S, figure: impl Fn(&T) -> f64) -> Option<Spread> {
        Spread::of(&ratios(&self.values(over, &figure), &self.values(under, &figure)))
    }

    /// A figure of a side for people.
    pub fn told(&self, side: S, figure: impl Fn(&T) -> f64) -> String {
        told(self.spread(side, figure))
    }

    /// Adds each of these figures of each side, as `SIDE_FIGURE`; null where a side was not measured.
    pub fn with_figures(
        &self,
        row: Fields,
        sides: &[S],
        name: impl Fn(S) -> &'static str,
        figures: &[Figure<T>],
    ) -> Fields {
        sides.iter().fold(row, |row, &side| {
            figures.iter().fold(row, |row, (figure, of)| {
                row.with_spread(&format!("{}_{figure}", name(side)), self.spread(side, of))
            })
        })
    }

    /// Adds ratios of a figure: name, the side above, the side below.
    pub fn with_ratios(&self, row: Fields, figure: fn(&T) -> f64, ratios: &[(&str, S, S)]) -> Fields {
        ratios
            .iter()
            .fold(row, |row, &(name, over, under)| row.with_spread(name, self.ratio(over, under, figure)))
    }
}

/// A figure for people.
pub fn told(spread: Option<Spread>) -> String {
    spread.map_or("–".to_owned(), |spread| spread.told(short))
}
