//! What slices of one load say: how much throughput the recorder takes, and how sure that is.

use seawall_page::chart::{Chart, Spread as SpreadChart};
use seawall_page::{Note, Table, Weight};

use super::Results;
use crate::case::Slicing;
use crate::interval::Interval;
use crate::spread::Spread;
use crate::trial::slices::{Label, ratios};

/// What was compared, in the order of the table.
const COMPARED: [(Label, &str); 2] =
    [(Label::With, "recording"), (Label::Control, "labelled alike, nothing done (control)")];

/// Found about a case of slices.
pub struct Sliced<'a> {
    slicing: &'a Slicing,
    /// Of each of [`COMPARED`]: slices to the mean of their neighbours, of all rounds.
    ratios: [Vec<f64>; 2],
}

/// What the recorder takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cost {
    TooFew,
    /// The control differs from its neighbours by more than chance: the method pretends differences here.
    NotToBeTrusted,
    Below,
    Above,
    NotShown,
}

/// Of the case's results; none if it has no slices.
pub fn sliced(results: &Results) -> Option<Sliced<'_>> {
    let slicing = results.case.slices.as_ref()?;
    let turns = || results.turns(&results.case.baseline().name);
    let ratios = COMPARED.map(|(label, _)| turns().flat_map(|turn| ratios(&turn.slices, label)).collect());
    Some(Sliced { slicing, ratios })
}

/// How many percent a ratio is below 1.
fn percent(ratio: f64) -> String {
    let percent = (1.0 - ratio) * 100.0;
    // No "-0.00".
    format!("{:.2}", if percent.abs() < 0.005 { 0.0 } else { percent })
}

impl Sliced<'_> {
    fn interval(&self, which: usize) -> Option<Interval> {
        Interval::of(&self.ratios[which])
    }

    fn cost(&self) -> Cost {
        let (Some(with), Some(control)) = (self.interval(0), self.interval(1)) else { return Cost::TooFew };
        let bound = 1.0 - self.slicing.below_percent / 100.0;
        if control.is_off() {
            return Cost::NotToBeTrusted;
        }
        match (with.low() > bound, with.high() < bound) {
            (true, _) => Cost::Below,
            (_, true) => Cost::Above,
            _ => Cost::NotShown,
        }
    }

    /// The answer.
    pub fn finding(&self) -> Note {
        let cost = self.cost();
        let below = self.slicing.below_percent;
        let verdict = match cost {
            Cost::TooFew => "Too few slices: no result.".to_owned(),
            Cost::NotToBeTrusted => {
                "No result: the control, which equals its neighbours, differs from them by more than \
                                     three standard errors."
                    .to_owned()
            }
            Cost::Below => format!("Less than {below} %: the whole interval is below it."),
            Cost::Above => format!("More than {below} %: the whole interval is above it."),
            Cost::NotShown => {
                format!("Neither more nor less than {below} % is shown: the interval holds both.")
            }
        };
        let said = |which: usize, what: &str| {
            let found = self.interval(which)?;
            let (mean, least, most) = (percent(found.mean()), percent(found.high()), percent(found.low()));
            Some(format!("{what}: {mean} % of throughput (95 % interval: {least} to {most} %)."))
        };
        let mut lines = vec![verdict];
        lines.extend(said(0, "Recording takes"));
        lines.extend(said(1, "The control, nothing, takes"));
        let weight = if cost == Cost::Below { Weight::Good } else { Weight::Info };
        Note { weight, title: "What was found".into(), lines }
    }

    /// The figures it is from.
    pub fn table(&self) -> Table {
        let head = ["slices", "how many", "mean of ratios", "95 % interval", "median", "taken, %"];
        let mut table = Table::new("Slices, each to the mean of its neighbours without the recorder", &head);
        for (which, (_, title)) in COMPARED.iter().enumerate() {
            let (Some(found), Some(spread)) = (self.interval(which), Spread::of(&self.ratios[which])) else {
                continue;
            };
            table.row([
                (*title).to_owned(),
                found.count().to_string(),
                format!("{:.4}", found.mean()),
                format!("{:.4}–{:.4}", found.low(), found.high()),
                format!("{:.4}", spread.median),
                percent(found.mean()),
            ]);
        }
        table
    }

    /// Every slice.
    pub fn chart(&self) -> Option<Chart> {
        let names = ["recording", "control"].into_iter().map(str::to_owned);
        let percent =
            self.ratios.iter().map(|ratios| ratios.iter().map(|r| (r - 1.0) * 100.0).collect::<Vec<_>>());
        let rows: Vec<_> = names.zip(percent).filter(|(_, values)| !values.is_empty()).collect();
        let unit = "transactions/s, % from the neighbours' mean".to_owned();
        let chart = SpreadChart { title: "Every slice".into(), unit, rows };
        (!chart.rows.is_empty()).then_some(Chart::Spread(chart))
    }

    /// How it was measured.
    pub fn order(&self, rounds: usize, seconds: u64) -> String {
        format!(
            "{rounds} rounds of one server under one load of {seconds} s, cut into slices of {} s: the recorder is stopped and \
             continued (SIGSTOP, SIGCONT), each slice with it stands between two without, and so does each control",
            self.slicing.seconds.get_ref()
        )
    }
}

#[cfg(test)]
mod tests {
    use toml::Spanned;

    use super::*;

    fn cost(with: [f64; 4], control: [f64; 4]) -> (Cost, String) {
        let slicing = Slicing { seconds: Spanned::new(0..0, 2.0), below_percent: 1.0 };
        let sliced = Sliced { slicing: &slicing, ratios: [with.to_vec(), control.to_vec()] };
        (sliced.cost(), sliced.finding().lines.join(" "))
    }

    #[test]
    fn a_cost_is_below_a_percent_only_if_the_whole_interval_is() {
        let equal = [1.001, 0.999, 1.0, 1.0];
        let (found, words) = cost([0.996, 0.997, 0.995, 0.996], equal);
        assert_eq!(found, Cost::Below, "{words}");
        assert!(words.contains("Less than 1 %") && words.contains("0.40 % of throughput"), "{words}");
        let (found, words) = cost([0.97, 1.02, 0.99, 1.0], equal);
        assert_eq!(found, Cost::NotShown, "{words}");
        assert!(words.contains("Neither") && words.contains("interval: -"), "{words}");
        assert_eq!(cost([0.95, 0.96, 0.95, 0.955], equal).0, Cost::Above);
        let off = [0.98, 0.981, 0.979, 0.98];
        assert_eq!(cost([0.996, 0.997, 0.995, 0.996], off).0, Cost::NotToBeTrusted);
    }
}
