//! Trials on machines that are made up: what is true of them is known, and so what a verdict may say.

use seawall_load::random::Random;

use super::*;
use crate::trial::at_position;
use crate::trial::record::{FORMAT, Record, Run, Store, Turn};

/// What each configuration really is of the baseline.
type Truth<'a> = &'a [(&'a str, f64)];

/// A trial of so many rounds; `speed` is the machine's at each turn.
fn trial(truth: Truth<'_>, rounds: usize, speed: &mut dyn FnMut(usize) -> f64) -> Results {
    let mut text = String::from(
        "name = \"made-up\"\ntitle = \"T\"\nquestion = \"Q\"\nseconds = 1\nmeasures = [\"throughput\"]\ncontrols = [\"base\"]\n\
         [pgbench]\ntest = \"simple-update\"\nclients = 1\nscale = 1\n\
         [[configuration]]\nname = \"base\"\ntitle = \"B\"\nrole = \"baseline\"\n",
    );
    for (name, _) in truth {
        text += &format!("[[configuration]]\nname = \"{name}\"\ntitle = \"{name}\"\n");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::of(dir.path(), "made-up").expect("a store");
    let run = Run { format: FORMAT, id: "1".into(), rounds, seconds: 1, text, ..Run::default() };
    let mut lines = vec![Record::Run(Box::new(run))];
    let sides = [&[("base", 1.0), ("base-again", 1.0)], truth].concat();
    for (round, position) in (0..rounds).flat_map(|r| (0..sides.len()).map(move |p| (r, p))) {
        let (name, of_base) = sides[at_position(position, round, sides.len())];
        let rate = 1000.0 * of_base * speed(round * sides.len() + position);
        let mut turn = Turn { run: "1".into(), configuration: name.into(), round, ..Turn::default() };
        turn.figures.insert(Measure::Throughput.key().into(), rate);
        lines.push(Record::Turn(Box::new(turn)));
    }
    let text: String = lines.iter().map(|l| serde_json::to_string(l).expect("a line") + "\n").collect();
    std::fs::write(store.path(), text).expect("lines");
    Results::latest(store.path()).expect("results").expect("a trial")
}

fn verdicts(truth: Truth<'_>, rounds: usize, speed: &mut dyn FnMut(usize) -> f64) -> Vec<Verdict> {
    let results = trial(truth, rounds, speed);
    truth.iter().map(|(name, _)| judge(&results, name).verdict).collect()
}

/// A machine on which equal turns differ by some `percent`.
fn noisy(seed: u64, percent: f64) -> impl FnMut(usize) -> f64 {
    let mut random = Random::new(seed, 0);
    // Twelve of equal weight are as good as a bell.
    move |_| (percent / 100.0 * ((0..12).map(|_| random.fraction()).sum::<f64>() - 6.0)).exp()
}

#[test]
fn a_machine_of_another_speed_in_each_round_hides_no_gain() {
    let truth = [("fsync-off", 1.45), ("slower", 0.7)];
    // The slowest round's 1.45 is far below the fastest round's 1.
    let mut noise = noisy(1, 1.0);
    let mut speed = |turn: usize| [0.6, 1.9, 1.2][turn / 4] * noise(turn);
    assert_eq!(verdicts(&truth, 3, &mut speed), [Verdict::Better, Verdict::Worse]);
}

#[test]
fn a_machine_that_becomes_slower_all_the_time_shows_nothing_of_equals() {
    for count in 1..=6 {
        let names: Vec<String> = (0..count).map(|i| format!("equal-{i}")).collect();
        let truth: Vec<_> = names.iter().map(|name| (name.as_str(), 1.0)).collect();
        for (rounds, percent) in [(3, 1.0), (3, 4.0), (5, -3.0)] {
            let mut speed = |turn: usize| (-percent / 100.0 * turn as f64).exp();
            let found = verdicts(&truth, rounds, &mut speed);
            assert_eq!(found, vec![Verdict::NoDifference; count], "{percent} % a turn, {rounds} rounds");
        }
    }
}

#[test]
fn equals_are_hardly_ever_told_apart() {
    let shown = |seed| {
        let truth = [("a", 1.0), ("b", 1.0), ("c", 1.0)];
        verdicts(&truth, 3, &mut noisy(seed, 8.0)).into_iter().filter(|v| v.is_shown()).count()
    };
    let wrong: usize = (0..700).map(shown).sum();
    assert!(wrong <= 21, "{wrong} of 2100 verdicts on equals, of which 1 % may be wrong");
}

#[test]
fn a_gain_smaller_than_the_noise_is_not_claimed_and_a_large_one_is() {
    let shown = |gain: f64| {
        let of = |seed| verdicts(&[("x", gain)], 3, &mut noisy(seed, 8.0))[0] == Verdict::Better;
        (0..300).filter(|seed| of(*seed)).count()
    };
    let (small, large) = (shown(1.03), shown(2.0));
    assert!(small <= 15, "3 % in noise of 8 % were claimed {small} times of 300");
    assert!(large >= 290, "twice the speed was seen {large} times of 300");
}
