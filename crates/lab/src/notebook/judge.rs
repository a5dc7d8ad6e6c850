//! What counts as a difference.
//!
//! A machine is faster now than five minutes ago, so absolute figures of different rounds say little about each
//! other. Everything is judged by ratios within a round, of turns seconds apart: a configuration to the baseline (to
//! the mean of its turns, where it was measured twice), and each control to what it repeats, which is what equal
//! things differ by: noise. A difference is shown only if there are three rounds at least, if it has the same
//! direction in every round, and if it was larger in each of them than noise in any.

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
    let worst = |worst: Option<f64>, factor: f64| Some(worst.map_or(factor, |w| w.max(factor)));
    controls(results, measure).into_iter().map(factor).filter(|f| f.is_finite()).fold(None, worst)
}

/// The controls' ratios, of all rounds.
fn controls(results: &Results, measure: Measure) -> Vec<f64> {
    let pairs = results.configurations.iter().filter_map(|c| Some((c.again_of.as_deref()?, c.name.as_str())));
    pairs
        .flat_map(|(once, again)| ratios(&results.values(again, measure), &results.values(once, measure)))
        .collect()
}

/// How far from 1, whichever way.
fn factor(ratio: f64) -> f64 {
    if ratio >= 1.0 { ratio } else { 1.0 / ratio }
}

/// Judges a configuration by the case's first measure.
pub fn judge(results: &Results, name: &str) -> Judged {
    let measure = results.case.judged();
    let baseline = &results.case.baseline().name;
    let again = results.configurations.iter().find(|c| c.again_of.as_deref() == Some(baseline));
    let once = results.values(baseline, measure);
    let base = match again {
        // The control itself is compared with what it repeats.
        Some(again) if again.name != name => mean(&once, &results.values(&again.name, measure)),
        _ => once,
    };
    let ratios = ratios(&results.values(name, measure), &base);
    let ratio = Spread::of(&ratios);
    let verdict = if name == baseline {
        Verdict::Baseline
    } else {
        verdict(&ratios, noise(results, measure), measure.more_is_better())
    };
    Judged { verdict, ratio }
}

/// The verdict on a configuration's ratios to the baseline, one a round.
fn verdict(ratios: &[f64], noise: Option<f64>, more_is_better: bool) -> Verdict {
    match ratios.len() {
        0 | 1 => return Verdict::Single,
        rounds if rounds < ROUNDS => return Verdict::TooFew(rounds),
        _ => {}
    }
    let Some(noise) = noise else { return Verdict::NoControl };
    let (more, less) = (ratios.iter().all(|r| *r > noise), ratios.iter().all(|r| *r < 1.0 / noise));
    match (more, less) {
        (false, false) => Verdict::NoDifference,
        (more, _) if more == more_is_better => Verdict::Better,
        _ => Verdict::Worse,
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

/// Of two turns of the same in each round; of one where there is only one.
fn mean(once: &BTreeMap<usize, f64>, again: &BTreeMap<usize, f64>) -> BTreeMap<usize, f64> {
    let of = |(round, value): (&usize, &f64)| {
        (*round, again.get(round).map_or(*value, |other| (value * other).sqrt()))
    };
    once.iter().map(of).collect()
}

#[cfg(test)]
mod tests;
