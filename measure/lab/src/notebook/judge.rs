//! A configuration judged, from the figures of its turns.
//!
//! A machine is faster now than five minutes ago, so absolute figures of different rounds say little about each
//! other. Everything is judged by ratios within a round, of turns seconds apart: a configuration to the baseline (to
//! the mean of its turns, where it was measured twice), and each control to what it repeats, which is what equal
//! things differ by: noise. What counts as a difference then is [`crate::verdict`]'s to say.

use std::collections::BTreeMap;

use super::Results;
use crate::case::Measure;
use crate::spread::Spread;
use crate::verdict::{self, Verdict};

/// A configuration judged.
#[derive(Clone, Debug)]
pub struct Judged {
    pub verdict: Verdict,
    /// Of the baseline, in each round.
    pub ratio: Option<Spread>,
}

/// By how much equal things differed, as a factor: 1.05 is 5 %. None without controls.
pub fn noise(results: &Results, measure: Measure) -> Option<f64> {
    verdict::noise(&Spread::of(&controls(results, measure))?)
}

/// The controls' ratios, of all rounds.
fn controls(results: &Results, measure: Measure) -> Vec<f64> {
    let pairs = results.configurations.iter().filter_map(|c| Some((c.again_of.as_deref()?, c.name.as_str())));
    pairs
        .flat_map(|(once, again)| ratios(&results.values(again, measure), &results.values(once, measure)))
        .collect()
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
        Verdict::on(ratios.len(), ratio, noise(results, measure), measure.more_is_better())
    };
    Judged { verdict, ratio }
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
