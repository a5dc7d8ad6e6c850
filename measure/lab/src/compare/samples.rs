//! A measure on every side, and the ratios of its rounds.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::side::Side;
use crate::spread::Spread;
use crate::verdict::{self, Verdict};

/// One measure on every side, higher is better.
///
/// A ratio is formed within each round, of runs that took turns within seconds, and its median is taken: what
/// the machine does from one minute to the next falls out of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Three {
    pub fs: Spread,
    pub seawall: Spread,
    /// Not durable.
    pub unsafe_bound: Spread,
    /// How many times the bare file system.
    pub speedup: Spread,
    /// Which part of the unsafe bound.
    pub of_unsafe: Spread,
    /// Which part of the unsafe bound an equal side reaches: what is not farther from 1 than this was not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<Spread>,
}

impl Three {
    /// Whether Seawall differs from the bare file system, by the lab's rule.
    pub fn verdict(&self, rounds: usize) -> Verdict {
        let noise = self.control.and_then(|control| verdict::noise(&control));
        Verdict::on(rounds, Some(self.speedup), noise, true)
    }
}

#[cfg(test)]
impl Three {
    /// Every figure is one.
    const ONE: Three = Three {
        fs: Spread::ONE,
        seawall: Spread::ONE,
        unsafe_bound: Spread::ONE,
        speedup: Spread::ONE,
        of_unsafe: Spread::ONE,
        control: None,
    };
    /// With a control.
    const CONTROLLED: Three = Three { control: Some(Spread::ONE), ..Three::ONE };
}

/// Values by side, one a round.
#[derive(Default)]
pub struct Samples(BTreeMap<Side, Vec<f64>>);

impl Samples {
    /// Adds the figure of one run.
    pub fn add(&mut self, side: Side, value: f64) {
        self.0.entry(side).or_default().push(value);
    }

    /// What the rounds say; an error if a side was never measured.
    pub fn three(&self) -> Result<Three> {
        let values = |side| self.0.get(&side).context("a side was never measured");
        let spread = |values: &[f64]| Spread::of(values).context("a side was never measured");
        let (fs, seawall, unsafe_bound) = (values(Side::Fs)?, values(Side::Seawall)?, values(Side::Unsafe)?);
        Ok(Three {
            fs: spread(fs)?,
            seawall: spread(seawall)?,
            unsafe_bound: spread(unsafe_bound)?,
            speedup: spread(&ratios(seawall, fs))?,
            of_unsafe: spread(&ratios(seawall, unsafe_bound))?,
            control: self.0.get(&Side::Control).and_then(|again| Spread::of(&ratios(again, unsafe_bound))),
        })
    }
}

/// Each round's ratio.
pub fn ratios(dividends: &[f64], divisors: &[f64]) -> Vec<f64> {
    dividends.iter().zip(divisors).map(|(dividend, divisor)| dividend / divisor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_that_of_runs_of_one_round() -> Result<()> {
        let mut samples = Samples::default();
        // A machine that slows down from round to round, and a side that is always nine tenths of another one.
        for speed in [300.0, 200.0, 100.0, 10.0] {
            samples.add(Side::Fs, speed / 2.0);
            samples.add(Side::Seawall, speed * 0.9);
            samples.add(Side::Unsafe, speed);
        }
        let three = samples.three()?;
        assert_eq!(three.of_unsafe, Spread { median: 0.9, min: 0.9, max: 0.9 });
        assert_eq!(three.speedup.median, 1.8);
        Ok(())
    }

    #[test]
    fn a_gain_is_judged_by_the_rounds_ratios_and_by_noise_not_by_ranges() -> Result<()> {
        let judged = |control: f64| -> Result<Verdict> {
            let mut samples = Samples::default();
            for speed in [300.0, 200.0, 100.0] {
                samples.add(Side::Fs, speed);
                samples.add(Side::Seawall, speed * 1.8);
                samples.add(Side::Unsafe, speed * 2.0);
                samples.add(Side::Control, speed * 2.0 * control);
            }
            Ok(samples.three()?.verdict(3))
        };
        // The ranges overlap: 180 to 540, and 100 to 300.
        assert_eq!(judged(0.97)?, Verdict::Better);
        assert_eq!(judged(0.5)?, Verdict::NoDifference);
        assert_eq!(Three::ONE.verdict(3), Verdict::NoControl);
        assert_eq!(Three::CONTROLLED.verdict(1), Verdict::Single);
        Ok(())
    }
}
