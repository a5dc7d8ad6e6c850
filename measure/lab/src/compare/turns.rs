//! The sides take turns, a slice at a time, in balanced [`order`].
//!
//! Whoever measures has everything drained and synced to disk before each slice, equally on all sides.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::side::order;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::side::Side;

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
