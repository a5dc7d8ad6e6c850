//! Machines that are made up: what the recorder costs on them is known.

use seawall_load::random::Random;
use toml::Spanned;

use super::*;
use crate::interval::Interval;

fn slicing(seconds: f64) -> Slicing {
    Slicing { seconds: Spanned::new(0..0, seconds), below_percent: 1.0 }
}

/// A load on a machine that loses `drift` of its speed in each slice, and differs by `noise` from slice to slice.
fn load(cost: f64, drift: f64, noise: f64, seed: u64) -> Vec<Slice> {
    let mut random = Random::new(seed, 0);
    let mut bell = || (0..12).map(|_| random.fraction()).sum::<f64>() - 6.0;
    let labels = Plan::of(&slicing(2.0), 244, 0).labels;
    let rate = |(i, label): (usize, Label)| {
        let taken = if label == Label::With { cost } else { 0.0 };
        Slice { label, rate: 10_000.0 * (1.0 - taken) * (-drift * i as f64).exp() * (noise * bell()).exp() }
    };
    labels.into_iter().enumerate().map(rate).collect()
}

#[test]
fn each_slice_with_the_recorder_and_each_control_has_two_neighbours_of_its_own() {
    let plan = Plan::of(&slicing(2.0), 84, 0);
    assert_eq!((plan.each, plan.labels.len()), (Duration::from_secs(2), 41));
    let count = |label| plan.labels.iter().filter(|l| **l == label).count();
    assert_eq!((count(Label::With), count(Label::Control)), (10, 10));
    let at = |label| plan.labels.iter().position(|l| *l == label).expect("there is one");
    assert_eq!((at(Label::With), at(Label::Control)), (1, 3));
    let second = Plan::of(&slicing(2.0), 84, 1);
    assert_eq!(second.labels.iter().position(|l| *l == Label::With), Some(3));
    // The load outlives its slices, however short it is.
    for seconds in [1, 2, 13, 84, 85, 100] {
        let plan = Plan::of(&slicing(2.0), seconds, 0);
        let took = plan.each * (plan.labels.len() as u32 + 1);
        let end = Duration::from_secs(seconds) + Duration::from_millis(1);
        assert!(plan.labels.len() >= 5 && took <= end, "{seconds}: {plan:?}");
    }
}

#[test]
fn a_drift_larger_than_the_cost_is_not_taken_for_it() {
    let slices = load(0.004, 0.02, 0.0, 1);
    let found = Interval::of(&ratios(&slices, Label::With)).expect("thirty");
    assert!(found.count() == 30 && (found.mean() - 0.996).abs() < 1e-9, "{found:?}");
    let control = Interval::of(&ratios(&slices, Label::Control)).expect("thirty");
    assert!((control.mean() - 1.0).abs() < 1e-9, "{control:?}");
}

#[test]
fn a_cost_is_found_in_noise_and_none_where_there_is_none() {
    let found =
        |cost, seed| Interval::of(&ratios(&load(cost, 0.001, 0.01, seed), Label::With)).expect("thirty");
    let (mut seen, mut pretended) = (0, 0);
    for seed in 0..200 {
        seen += usize::from(found(0.03, seed).high() < 0.99);
        pretended += usize::from(found(0.0, seed).is_off());
    }
    assert!(seen >= 190, "3 % were called more than 1 % in {seen} of 200 cases");
    assert!(pretended <= 6, "a cost of nothing was seen in {pretended} of 200 cases");
}

#[test]
fn transactions_belong_to_the_slice_in_which_they_ended() {
    let at = |ended_us| Transaction { ended_us, took_us: 1 };
    let done = [5, 10, 11, 19, 20, 29, 30, 31].map(|s| at(s * 1_000_000));
    assert_eq!(rates(&done, &[10_000_000, 20_000_000, 30_000_000]), [0.3, 0.2]);
}
