//! What counts as a difference.
//!
//! A configuration is compared with the baseline round by round, of turns that followed each other. Noise is what
//! the controls show: the same configuration measured twice under two names, in the same rounds. A difference is
//! shown only if there are three rounds at least, if the ranges do not overlap, those of the control counted to the
//! baseline's, and if the difference was larger than the noise in every round.

use std::collections::BTreeMap;

use super::Results;
use crate::case::Measure;
use crate::spread::Spread;

/// Fewer rounds are no result.
pub const ROUNDS: usize = 3;

/// What the figures show of one configuration.
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

/// A configuration judged.
#[derive(Clone, Debug)]
pub struct Judged {
    pub verdict: Verdict,
    /// Of the baseline, in each round.
    pub ratio: Option<Spread>,
}

/// By how much equal things differed, as a factor: 1.05 is 5 %. None without controls.
pub fn noise(results: &Results, measure: Measure) -> Option<f64> {
    let pairs = results.configurations.iter().filter_map(|c| Some((c.again_of.as_deref()?, c.name.as_str())));
    let mut worst: Option<f64> = None;
    for (once, again) in pairs {
        for ratio in ratios(&results.values(again, measure), &results.values(once, measure)) {
            let factor = if ratio >= 1.0 { ratio } else { 1.0 / ratio };
            worst = Some(worst.map_or(factor, |w| w.max(factor)));
        }
    }
    worst.filter(|w| w.is_finite())
}

/// Judges a configuration by the case's first measure.
pub fn judge(results: &Results, name: &str) -> Judged {
    let measure = results.case.judged();
    let baseline = &results.case.baseline().name;
    let mine = results.values(name, measure);
    let base = results.values(baseline, measure);
    let ratio = Spread::of(&ratios(&mine, &base));
    let again = results.configurations.iter().filter(|c| c.again_of.as_deref() == Some(baseline));
    let mut of_base: Vec<f64> = base.values().copied().collect();
    let is_the_control = again.clone().any(|c| c.name == name);
    if !is_the_control {
        of_base.extend(again.flat_map(|c| results.values(&c.name, measure).into_values()));
    }
    let all: Vec<f64> = mine.values().copied().collect();
    let facts = Facts {
        rounds: mine.keys().filter(|round| base.contains_key(round)).count(),
        mine: Spread::of(&all),
        base: Spread::of(&of_base),
        ratio,
        noise: noise(results, measure),
        more_is_better: measure.more_is_better(),
    };
    let verdict = if name == baseline { Verdict::Baseline } else { facts.verdict() };
    Judged { verdict, ratio }
}

/// What a verdict is made of.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// In which both were measured.
    pub rounds: usize,
    pub mine: Option<Spread>,
    /// The control's turns counted to it.
    pub base: Option<Spread>,
    pub ratio: Option<Spread>,
    pub noise: Option<f64>,
    pub more_is_better: bool,
}

impl Facts {
    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        match self.rounds {
            0 | 1 => return Verdict::Single,
            rounds if rounds < ROUNDS => return Verdict::TooFew(rounds),
            _ => {}
        }
        let (Some(mine), Some(base), Some(ratio)) = (self.mine, self.base, self.ratio) else {
            return Verdict::TooFew(self.rounds);
        };
        let Some(noise) = self.noise else { return Verdict::NoControl };
        let outside = ratio.min > noise || ratio.max < 1.0 / noise;
        if mine.overlaps(&base) || !outside {
            return Verdict::NoDifference;
        }
        if (ratio.median > 1.0) == self.more_is_better { Verdict::Better } else { Verdict::Worse }
    }
}

impl Verdict {
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

fn ratios(mine: &BTreeMap<usize, f64>, base: &BTreeMap<usize, f64>) -> Vec<f64> {
    let ratio = |(round, value): (&usize, &f64)| base.get(round).filter(|b| **b > 0.0).map(|b| value / b);
    mine.iter().filter_map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(base: &[f64], mine: &[f64], noise: Option<f64>) -> Facts {
        let ratios: Vec<f64> = mine.iter().zip(base).map(|(m, b)| m / b).collect();
        Facts {
            rounds: mine.len(),
            mine: Spread::of(mine),
            base: Spread::of(base),
            ratio: Spread::of(&ratios),
            noise,
            more_is_better: true,
        }
    }

    #[test]
    fn a_difference_is_shown_only_outside_the_noise() {
        let base = [100.0, 102.0, 98.0];
        let shown = |mine: &[f64], noise| facts(&base, mine, noise).verdict();
        assert_eq!(shown(&[150.0, 155.0, 149.0], Some(1.05)), Verdict::Better);
        assert_eq!(shown(&[70.0, 72.0, 69.0], Some(1.05)), Verdict::Worse);
        // The ranges do not overlap, but equal things differed as much in this very run.
        assert_eq!(shown(&[106.0, 107.0, 105.0], Some(1.08)), Verdict::NoDifference);
        assert_eq!(shown(&[106.0, 107.0, 105.0], Some(1.02)), Verdict::Better);
        // Better on average, but the ranges overlap.
        assert_eq!(shown(&[120.0, 101.0, 119.0], Some(1.01)), Verdict::NoDifference);
        assert_eq!(shown(&[150.0, 155.0, 149.0], None), Verdict::NoControl);
    }

    #[test]
    fn few_rounds_are_no_result_whatever_they_say() {
        assert_eq!(facts(&[100.0], &[900.0], Some(1.0)).verdict(), Verdict::Single);
        assert_eq!(facts(&[100.0, 100.0], &[900.0, 900.0], Some(1.0)).verdict(), Verdict::TooFew(2));
    }

    #[test]
    fn less_time_is_better() {
        let mut f = facts(&[10.0, 10.0, 10.0], &[5.0, 5.0, 5.0], Some(1.1));
        f.more_is_better = false;
        assert_eq!(f.verdict(), Verdict::Better);
    }
}
