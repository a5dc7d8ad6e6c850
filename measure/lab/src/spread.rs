//! A median is never shown without its spread.

use serde::{Deserialize, Serialize};

/// Median, minimum and maximum over the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// For tests that need some figure.
    #[cfg(test)]
    pub const ONE: Spread = Spread { median: 1.0, min: 1.0, max: 1.0 };

    /// Over one value a round; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Spread { median, min, max })
    }

    /// `median (lowest–highest)`, each number as `word` writes it.
    pub fn told(&self, word: impl Fn(f64) -> String) -> String {
        format!("{} ({}–{})", word(self.median), word(self.min), word(self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::of(&[4.0, 1.0]).map(|s| s.median), Some(2.5));
        assert_eq!(Spread::of(&[]), None);
    }
}
