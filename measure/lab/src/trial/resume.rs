//! A trial: new, or the last one of its case, which goes on with the round that was cut off.

use anyhow::Result;

use super::record::{FORMAT, Record, Run, Store};
use crate::case::Case;
use crate::case::builtin::Found;
use crate::cli::RunOptions;
use crate::machine;

/// Of a turn with `--quick`, seconds.
const QUICK_SECONDS: u64 = 2;
/// What a trial goes by.
pub struct Trial<'a> {
    pub found: &'a Found,
    pub run: Run,
    pub store: Store,
    /// Rounds that an earlier attempt has finished.
    pub done: usize,
}

impl<'a> Trial<'a> {
    /// A new one, or the last one of this case if it is to be resumed and was run in the same way.
    pub fn begin(options: &RunOptions, found: &'a Found) -> Result<Self> {
        let case = &found.case;
        let store = Store::of(&options.common.out, case.name())?;
        let seconds = match (options.seconds, options.quick) {
            (Some(seconds), _) => seconds,
            (None, true) => QUICK_SECONDS.min(*case.seconds.get_ref()),
            (None, false) => *case.seconds.get_ref(),
        };
        let run = Run {
            format: FORMAT,
            id: format!("{} {}", machine::now(), std::process::id()),
            at: machine::now(),
            text: found.text.clone(),
            rounds: options.rounds.unwrap_or(*case.rounds.get_ref()),
            seconds,
            quick: options.quick,
            ..Run::default()
        };
        if options.resume
            && let Some((earlier, done)) = resumable(&store.read()?, &run, case)
        {
            return Ok(Trial { found, run: earlier, store, done });
        }
        Ok(Trial { found, run, store, done: 0 })
    }
}

/// The last run, if it is the same trial, and how many of its rounds are whole.
fn resumable(records: &[Record], wanted: &Run, case: &Case) -> Option<(Run, usize)> {
    let last = records.iter().rev().find_map(|r| if let Record::Run(run) = r { Some(run) } else { None })?;
    let same = |a: &Run, b: &Run| {
        (a.format, &a.text, a.rounds, a.seconds, a.quick) == (b.format, &b.text, b.rounds, b.seconds, b.quick)
    };
    if !same(last, wanted) {
        return None;
    }
    let is_missing = |name: &String| {
        records.iter().any(|r| {
            matches!(r, Record::NotPossible { run, configuration, .. } if *run == last.id && configuration == name)
        })
    };
    let wanted: Vec<String> =
        case.expanded().into_iter().map(|c| c.name).filter(|name| !is_missing(name)).collect();
    let has = |name: &String, round: usize| {
        records.iter().any(|r| {
            matches!(r, Record::Turn(t) if t.run == last.id && t.round == round && t.configuration == *name)
        })
    };
    let done = (0..last.rounds).take_while(|&round| wanted.iter().all(|name| has(name, round))).count();
    (done > 0).then(|| ((**last).clone(), done))
}

#[cfg(test)]
mod tests {
    use super::super::record::Turn;
    use super::*;
    use crate::case::builtin;

    fn turn(run: &str, configuration: &str, round: usize) -> Record {
        let (run, configuration) = (run.to_owned(), configuration.to_owned());
        Record::Turn(Box::new(Turn { run, configuration, round, ..Turn::default() }))
    }

    #[test]
    fn a_trial_goes_on_with_the_round_that_was_cut_off() {
        let found = builtin::find("layout").expect("a case");
        let run = Run { id: "1".into(), rounds: 3, seconds: 5, text: found.text.clone(), ..Run::default() };
        let mut records = vec![Record::Run(Box::new(run.clone()))];
        let (first, second) =
            (["together", "together-again", "own-device", "seawall"], ["together", "own-device", "seawall"]);
        records.extend(
            first.map(|name| turn("1", name, 0)).into_iter().chain(second.map(|name| turn("1", name, 1))),
        );
        assert_eq!(
            resumable(&records, &run, &found.case).map(|(run, done)| (run.id, done)),
            Some(("1".into(), 1))
        );
        let impossible =
            Record::NotPossible { run: "1".into(), configuration: "together-again".into(), why: "x".into() };
        records.push(impossible);
        assert_eq!(resumable(&records, &run, &found.case).map(|(_, done)| done), Some(2));
        let other = Run { seconds: 6, ..run };
        assert!(resumable(&records, &other, &found.case).is_none(), "another trial was taken for this one");
    }
}
