//! Runs by side, one a round, and what they say of a figure.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use crate::compare::ratios;
use crate::spread::Spread;

/// The runs `T` of each side `S`, in the order of the rounds.
pub struct Runs<S, T>(BTreeMap<S, Vec<T>>);

impl<S, T> Default for Runs<S, T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<S: Ord, T> Runs<S, T> {
    /// Adds one round's run.
    pub fn add(&mut self, side: S, run: T) {
        self.0.entry(side).or_default().push(run);
    }

    fn values(&self, side: &S, figure: impl Fn(&T) -> f64) -> Vec<f64> {
        self.0.get(side).into_iter().flatten().map(figure).collect()
    }

    /// A figure's spread over the rounds of a side.
    pub fn spread(&self, side: S, figure: impl Fn(&T) -> f64) -> Result<Spread> {
        Spread::of(&self.values(&side, figure)).context("a side was never measured")
    }

    /// A figure of one side over that of another one, round by round.
    pub fn ratio(&self, over: S, under: S, figure: impl Fn(&T) -> f64) -> Result<Spread> {
        let (over, under) = (self.values(&over, &figure), self.values(&under, &figure));
        Spread::of(&ratios(&over, &under)).context("a side was never measured")
    }
}
