//! The sides take turns, a slice at a time, in balanced [`order`].
//!
//! Before each slice everything is drained and synced to disk, equally on all sides.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::{Samples, Three};
use crate::lab::Lab;
use crate::side::{Side, order};
use crate::table::thousands;

/// How often each side is measured.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    pub rounds: usize,
    /// Turns of each side in a round.
    pub slices: usize,
}

impl Turns {
    /// For databases that begin empty each time: one turn in a round.
    pub fn whole(rounds: usize) -> Self {
        Turns { rounds, slices: 1 }
    }
}

/// What one side did in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Operations a second; of a round, the mean of its slices.
    pub rate: f64,
    /// Operations that were reported.
    pub count: u64,
}

/// How many slices a run of so many seconds is, none of them shorter than `least` seconds.
///
/// Short, because a shared machine's speed changes within seconds: of two equal servers that run six seconds each,
/// one after the other, one was seen at 0.6 of the other.
pub fn slices(seconds: f64, least: f64) -> usize {
    ((seconds / least) as usize).max(1)
}

/// One round: `run` is called for every side in every slice.
pub fn in_turns<S: Copy + Ord>(
    sides: &[S],
    round: usize,
    slices: usize,
    mut run: impl FnMut(S) -> Result<Work>,
) -> Result<BTreeMap<S, Work>> {
    let mut done: BTreeMap<S, Work> = BTreeMap::new();
    for slice in 0..slices {
        for side in order(sides, round + slice) {
            let work = run(side)?;
            let sum = done.entry(side).or_default();
            sum.rate += work.rate / slices as f64;
            sum.count += work.count;
        }
    }
    Ok(done)
}

/// Rates of every shape on every side in every round.
pub fn rates<S>(
    lab: &Lab,
    database: &str,
    shapes: &[S],
    turns: Turns,
    title: impl Fn(&S) -> String,
    mut measure: impl FnMut(Side, &S) -> Result<f64>,
) -> Result<Vec<Three>> {
    let mut samples: Vec<Samples> = shapes.iter().map(|_| Samples::default()).collect();
    for round in 0..turns.rounds {
        for (shape, samples) in shapes.iter().zip(&mut samples) {
            let what = format!("round {}: {database}, {}", round + 1, title(shape));
            let done = in_turns(&Side::CONTROLLED, round, turns.slices, |side| {
                lab.progress.doing(&format!("{what}, {}", side.title()));
                lab.settle()?;
                let rate = measure(side, shape).with_context(|| format!("{what}, {}", side.title()))?;
                Ok(Work { rate, count: 0 })
            })?;
            for (side, work) in done {
                lab.progress.done(&format!("{what}, {}: {} a second", side.title(), thousands(work.rate)));
                samples.add(side, work.rate);
            }
        }
    }
    samples.iter().map(Samples::three).collect()
}

/// How many progress steps [`rates`] takes.
pub fn steps(shapes: usize, rounds: usize) -> usize {
    shapes * rounds * Side::CONTROLLED.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_the_mean_of_slices_in_balanced_order() -> Result<()> {
        let mut ran = Vec::new();
        let done = in_turns(&Side::DATABASES, 1, 2, |side| {
            ran.push(side);
            Ok(Work { rate: ran.len() as f64, count: 10 })
        })?;
        use Side::{Fs, Seawall, Unsafe};
        assert_eq!(ran, [Seawall, Unsafe, Fs, Unsafe, Fs, Seawall]);
        assert_eq!(done[&Seawall], Work { rate: 3.5, count: 20 });
        Ok(())
    }

    #[test]
    fn a_slice_is_never_too_short() {
        assert_eq!(
            [(6.0, 1.0), (2.0, 0.5), (0.5, 0.5), (0.2, 0.5)].map(|(s, least)| slices(s, least)),
            [6, 4, 1, 1]
        );
    }
}
