//! Does a series grow? Medians of its first and its last quarter, and a slope that outliers do not move.

use serde::{Deserialize, Serialize};

use crate::spread::Spread;

/// Samples that the slope is taken over, at most: it looks at every pair of them.
const POINTS_MAX: usize = 500;

/// What became of one figure over the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// The first quarter of the samples.
    pub first: Spread,
    /// The last quarter.
    pub last: Spread,
    /// The highest of all.
    pub highest: f64,
    /// The median slope of all pairs of samples (Theil and Sen), in units an hour.
    pub per_hour: f64,
}

impl Growth {
    /// Over samples of (seconds, value) in the order of time; `None` with fewer than four.
    pub fn of(samples: &[(f64, f64)]) -> Option<Self> {
        let quarter = samples.len() / 4;
        let values: Vec<f64> = samples.iter().map(|(_, value)| *value).collect();
        Some(Self {
            first: Spread::of(&values[..quarter])?,
            last: Spread::of(&values[values.len() - quarter..])?,
            highest: Spread::of(&values)?.max,
            per_hour: slope(samples) * 3600.0,
        })
    }
}

fn slope(samples: &[(f64, f64)]) -> f64 {
    let step = samples.len().div_ceil(POINTS_MAX).max(1);
    let points: Vec<_> = samples.iter().step_by(step).collect();
    let pairs = points.iter().enumerate().flat_map(|(i, a)| points[i + 1..].iter().map(move |b| (a, b)));
    let slopes: Vec<f64> = pairs.filter(|(a, b)| b.0 > a.0).map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)).collect();
    Spread::of(&slopes).map_or(0.0, |slopes| slopes.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_is_told_from_noise_and_from_one_outlier() {
        let leak: Vec<_> = (0..400).map(|i| (f64::from(i), 100.0 + f64::from(i) / 2.0)).collect();
        let growth = Growth::of(&leak).expect("samples");
        assert_eq!(growth.per_hour, 1800.0);
        assert!(growth.first.max < growth.last.min, "{growth:?}");
        let mut level: Vec<_> = (0..2000).map(|i| (f64::from(i), 100.0 + f64::from(i % 3))).collect();
        level[1990].1 = 1e9;
        let growth = Growth::of(&level).expect("samples");
        assert_eq!((growth.first.median, growth.last.median), (101.0, 101.0));
        assert_eq!(growth.per_hour, 0.0);
        assert_eq!(growth.highest, 1e9);
        assert_eq!(Growth::of(&level[..3]), None);
    }
}
