//! The latest trial of a case, as its lines say it: whole, or the part that was finished.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::case::{Case, Configuration, Measure, parse};
use crate::spread::Spread;
use crate::trial::record::{FORMAT, Record, Run, Turn, read};

/// What was measured.
pub struct Results {
    pub case: Case,
    pub run: Run,
    /// Those that have a turn at least, in the case's order.
    pub configurations: Vec<Configuration>,
    /// By configuration, then round; the last attempt of each.
    turns: BTreeMap<String, BTreeMap<usize, Turn>>,
    /// What could not be had here, and why.
    pub not_possible: Vec<(Configuration, String)>,
    /// If it did not run to its end: why.
    pub unfinished: Option<String>,
}

impl Results {
    /// The latest trial that has a turn; none if there is none.
    ///
    /// # Errors
    /// If the lines cannot be read, or are of another version.
    pub fn latest(path: &Path) -> Result<Option<Self>> {
        let records = read(path)?;
        let runs: Vec<&Run> = records
            .iter()
            .filter_map(|r| if let Record::Run(run) = r { Some(&**run) } else { None })
            .collect();
        let has_turn = |run: &&&Run| records.iter().any(|r| matches!(r, Record::Turn(t) if t.run == run.id));
        match runs.iter().rev().find(has_turn) {
            Some(run) => Self::of(path, run, &records).map(Some),
            None => Ok(None),
        }
    }

    fn of(path: &Path, run: &Run, records: &[Record]) -> Result<Self> {
        ensure!(
            run.format == FORMAT,
            "{} has lines of version {}, but this program writes {FORMAT}: measure again, or move the file away",
            path.display(),
            run.format
        );
        let case =
            parse(&path.display().to_string(), &run.text).context("cannot read the case as it was run")?;
        let mut turns: BTreeMap<String, BTreeMap<usize, Turn>> = BTreeMap::new();
        let mut why: BTreeMap<String, String> = BTreeMap::new();
        let mut unfinished = Some("it was cut off".to_owned());
        for record in records {
            match record {
                Record::Turn(turn) if turn.run == run.id => {
                    turns.entry(turn.configuration.clone()).or_default().insert(turn.round, (**turn).clone());
                }
                Record::NotPossible { run: id, configuration, why: reason } if *id == run.id => {
                    why.insert(configuration.clone(), reason.clone());
                }
                Record::End { run: id, how, finished } if *id == run.id => {
                    unfinished = (!finished).then(|| how.clone());
                }
                _ => {}
            }
        }
        let (measured, others): (Vec<_>, Vec<_>) =
            case.expanded().into_iter().partition(|c| turns.contains_key(&c.name));
        let not_possible =
            others.into_iter().filter_map(|c| why.get(&c.name).map(|w| (c.clone(), w.clone())));
        let not_possible = not_possible.collect();
        Ok(Results { case, run: run.clone(), configurations: measured, turns, not_possible, unfinished })
    }

    /// All turns of a configuration.
    pub fn turns(&self, name: &str) -> impl Iterator<Item = &Turn> {
        self.turns.get(name).into_iter().flat_map(BTreeMap::values)
    }

    /// The last turn of a configuration: for what does not change from round to round.
    pub fn last(&self, name: &str) -> Option<&Turn> {
        self.turns(name).last()
    }

    /// A measure of a configuration by round.
    pub fn values(&self, name: &str, measure: Measure) -> BTreeMap<usize, f64> {
        let turns = self.turns.get(name).into_iter().flatten();
        turns.filter_map(|(round, turn)| Some((*round, *turn.figures.get(measure.key())?))).collect()
    }

    /// Over the rounds.
    pub fn spread(&self, name: &str, measure: Measure) -> Option<Spread> {
        Spread::of(&self.values(name, measure).into_values().collect::<Vec<_>>())
    }

    /// A wait's share of DB time in percent over all turns.
    pub fn share(&self, name: &str, wait: &str) -> Option<f64> {
        let weighed: Vec<(f64, f64)> =
            self.turns(name).filter_map(|t| Some((t.time.share(wait)?, t.time.samples as f64))).collect();
        let all: f64 = weighed.iter().map(|(_, samples)| samples).sum();
        (all > 0.0).then(|| weighed.iter().map(|(share, samples)| share * samples).sum::<f64>() / all)
    }

    /// What others used of the CPUs before turns, percent: over all turns.
    pub fn others_cpu(&self) -> Option<Spread> {
        Spread::of(&self.turns.values().flat_map(BTreeMap::values).map(|t| t.others_cpu).collect::<Vec<_>>())
    }
}
