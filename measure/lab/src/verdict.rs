//! What counts as a difference: the one rule, of ratios within a round.
//!
//! Input: a configuration's ratios to what it is compared with, one a round, of turns seconds apart; and noise, what
//! equal things differed by. A difference is shown only if there are three rounds at least, if it has the same
//! direction in every round, and if it was larger in each of them than noise in any. Lab and demo judge by it.

use crate::spread::Spread;

/// Fewer rounds are no result.
pub const ROUNDS: usize = 3;

/// What the figures show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is what others are compared with.
    Baseline,
    /// Measured once: no result, whatever the figure says.
    Single,
    /// Measured fewer times than a result takes.
    TooFew(usize),
    /// Nothing was measured twice: what noise is, is not known.
    NoControl,
    NoDifference,
    Better,
    Worse,
}

impl Verdict {
    /// On ratios of so many rounds; `noise` is a factor, 1.05 for 5 %.
    pub fn on(rounds: usize, ratio: Option<Spread>, noise: Option<f64>, more_is_better: bool) -> Self {
        let Some(ratio) = ratio.filter(|_| rounds > 1) else { return Verdict::Single };
        if rounds < ROUNDS {
            return Verdict::TooFew(rounds);
        }
        let Some(noise) = noise else { return Verdict::NoControl };
        match (ratio.min > noise, ratio.max < 1.0 / noise) {
            (false, false) => Verdict::NoDifference,
            (more, _) if more == more_is_better => Verdict::Better,
            _ => Verdict::Worse,
        }
    }

    /// In a table.
    pub fn in_words(self) -> String {
        match self {
            Verdict::Baseline => "baseline".into(),
            Verdict::Single => "a single run: no result".into(),
            Verdict::TooFew(rounds) => format!("{rounds} rounds: no result"),
            Verdict::NoControl => "noise unknown: no result".into(),
            Verdict::NoDifference => "no difference shown".into(),
            Verdict::Better => "better".into(),
            Verdict::Worse => "worse".into(),
        }
    }

    /// Whether a ratio may be quoted.
    pub fn is_shown(self) -> bool {
        matches!(self, Verdict::Better | Verdict::Worse)
    }
}

/// How far from 1 the ratios of equal things were at most, whichever way. None without any.
pub fn noise(ratios: &Spread) -> Option<f64> {
    let factor = |ratio: f64| if ratio >= 1.0 { ratio } else { 1.0 / ratio };
    Some(factor(ratios.min).max(factor(ratios.max))).filter(|noise| noise.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(ratios: &[f64], noise: Option<f64>, more_is_better: bool) -> Verdict {
        Verdict::on(ratios.len(), Spread::of(ratios), noise, more_is_better)
    }

    #[test]
    fn a_difference_is_larger_in_each_round_than_noise_in_any() {
        assert_eq!(on(&[1.06, 1.07, 1.05], Some(1.02), true), Verdict::Better);
        assert_eq!(on(&[1.06, 1.07, 1.05], Some(1.08), true), Verdict::NoDifference);
        assert_eq!(on(&[0.7, 0.72, 0.69], Some(1.05), true), Verdict::Worse);
        // Better on average, but not in each round.
        assert_eq!(on(&[1.2, 0.99, 1.2], Some(1.01), true), Verdict::NoDifference);
        assert_eq!(on(&[1.5, 0.5, 1.5], Some(1.01), true), Verdict::NoDifference);
        assert_eq!(on(&[1.5, 1.5, 1.5], None, true), Verdict::NoControl);
        // Less time is better.
        assert_eq!(on(&[0.5, 0.5, 0.5], Some(1.1), false), Verdict::Better);
        assert_eq!(on(&[2.0, 2.0, 2.0], Some(1.1), false), Verdict::Worse);
    }

    #[test]
    fn few_rounds_are_no_result_whatever_they_say() {
        assert_eq!(on(&[], Some(1.0), true), Verdict::Single);
        assert_eq!(on(&[9.0], Some(1.0), true), Verdict::Single);
        assert_eq!(on(&[9.0, 9.0], Some(1.0), true), Verdict::TooFew(2));
    }

    #[test]
    fn noise_is_the_farthest_from_equal_whichever_way() {
        let spread = |ratios: &[f64]| noise(&Spread::of(ratios).expect("ratios"));
        assert_eq!(spread(&[1.02, 0.8, 1.1]), Some(1.25));
        assert_eq!(spread(&[1.02, 0.99, 1.1]), Some(1.1));
        assert_eq!(spread(&[0.0, 1.0]), None);
    }
}
