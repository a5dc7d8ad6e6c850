//! What was counted between two snapshots.
//!
//! Input: consecutive snapshots of one target. Output: one [`Delta`] per item, added up over the pairs.
//! Invariants: a delta is never negative. Where counters began again (another epoch, or a counter that went
//! back) the later value stands alone: counted from zero, and the pair is named as broken. An item that the
//! earlier snapshot lacks is new only if the earlier snapshot had all items of that source.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Reading, Snapshot};

/// An item's delta.
#[derive(Clone, Debug, Default)]
pub struct Delta {
    /// How much each counter grew.
    pub counters: BTreeMap<String, f64>,
    /// Gauges at the end.
    pub gauges: BTreeMap<String, f64>,
    /// Facts at the end.
    pub facts: BTreeMap<String, String>,
}

impl Delta {
    /// How much a counter grew; 0 for one that was not counted.
    pub fn counter(&self, name: &str) -> f64 {
        self.counters.get(name).copied().unwrap_or(0.0)
    }

    /// A gauge at the end; 0 for one that was not there.
    pub fn gauge(&self, name: &str) -> f64 {
        self.gauges.get(name).copied().unwrap_or(0.0)
    }

    /// A fact at the end; empty for one that was not known.
    pub fn fact(&self, name: &str) -> String {
        self.facts.get(name).cloned().unwrap_or_default()
    }
}

/// All deltas, by kind and item.
#[derive(Clone, Debug, Default)]
pub struct Deltas {
    items: BTreeMap<(String, String), Delta>,
    /// What is missing or broken, in words.
    pub warnings: Vec<String>,
}

impl Deltas {
    /// Adds up what happened between each of these snapshots and the next.
    pub fn over(snapshots: &[Snapshot]) -> Self {
        let mut deltas = Self::default();
        let mut broken = BTreeMap::new();
        for (i, later) in snapshots.iter().enumerate().skip(1) {
            for source in &later.sources {
                // The database may have been away in between: what it counted meanwhile counts all the same.
                let earlier =
                    snapshots[..i].iter().rev().find(|s| s.sources.iter().any(|x| x.kind == source.kind));
                match earlier {
                    Some(earlier) => deltas.add_source(&source.kind, earlier, later, &mut broken),
                    None => deltas.warn_of_beginning(&source.kind, later.id),
                }
            }
        }
        for (kind, pairs) in broken {
            deltas.warnings.push(format!(
                "{kind}: its counters began again (a restart or a reset) between snapshots {}; the counts \
                 from before that are missing, so totals and rates are lower bounds",
                pairs.into_iter().collect::<Vec<_>>().join(", ")
            ));
        }
        deltas
    }

    fn add_source(
        &mut self,
        kind: &str,
        a: &Snapshot,
        b: &Snapshot,
        broken: &mut BTreeMap<String, BTreeSet<String>>,
    ) {
        let earlier: BTreeMap<_, _> = a.of(kind).map(|r| (&r.item, r)).collect();
        let complete = a.sources.iter().any(|s| s.kind == kind && s.complete);
        for later in b.of(kind) {
            let (grown, restarted) = match earlier.get(&later.item) {
                Some(earlier) => grown(earlier, later),
                None if complete => (later.counters.clone(), false),
                None => (BTreeMap::new(), false),
            };
            if restarted {
                broken.entry(kind.into()).or_default().insert(format!("{} and {}", a.id, b.id));
            }
            self.add(later, grown);
        }
    }

    fn warn_of_beginning(&mut self, kind: &str, id: i64) {
        self.warnings
            .push(format!("{kind}: captured only from snapshot {id} on, so nothing before it counts"));
    }

    fn add(&mut self, later: &Reading, grown: BTreeMap<String, f64>) {
        let delta = self.items.entry((later.kind.clone(), later.item.clone())).or_default();
        for (name, value) in grown {
            *delta.counters.entry(name).or_default() += value;
        }
        delta.gauges.clone_from(&later.gauges);
        delta.facts.clone_from(&later.facts);
    }

    /// Items of one kind.
    pub fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a str, &'a Delta)> {
        let mine = self.items.iter().filter(move |((k, _), _)| k == kind);
        mine.map(|((_, item), delta)| (item.as_str(), delta))
    }

    /// One counter of one item.
    pub fn get(&self, kind: &str, item: &str, counter: &str) -> Option<f64> {
        self.items.get(&(kind.into(), item.into()))?.counters.get(counter).copied()
    }

    /// One counter over all items of a kind.
    pub fn sum(&self, kind: &str, counter: &str) -> Option<f64> {
        let values = self.of(kind).filter_map(|(_, delta)| delta.counters.get(counter));
        values.copied().fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }
}

/// How much each counter grew, and whether they began again meanwhile.
fn grown(earlier: &Reading, later: &Reading) -> (BTreeMap<String, f64>, bool) {
    let went_back = |(name, value): (&String, &f64)| earlier.counters.get(name).is_some_and(|e| value < e);
    if earlier.epoch != later.epoch || later.counters.iter().any(went_back) {
        return (later.counters.clone(), true);
    }
    let grown =
        |(name, value): (&String, &f64)| (name.clone(), value - earlier.counters.get(name).unwrap_or(&0.0));
    (later.counters.iter().map(grown).collect(), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(id: i64, complete: bool, readings: &[(&str, &str, f64)]) -> Snapshot {
        let reading =
            |(item, epoch, value): &(&str, &str, f64)| Reading::new("k", *item, *epoch).counter("n", *value);
        let mut snapshot = Snapshot { id, ..Snapshot::default() };
        snapshot.add("k", complete, readings.iter().map(reading).collect());
        snapshot
    }

    #[test]
    fn counters_are_subtracted() {
        let deltas =
            Deltas::over(&[snapshot(1, true, &[("x", "e", 5.0)]), snapshot(2, true, &[("x", "e", 12.0)])]);
        assert_eq!(deltas.get("k", "x", "n"), Some(7.0));
        assert!(deltas.warnings.is_empty());
    }

    #[test]
    fn a_reset_counts_from_zero_and_is_named() {
        for (epoch, value) in [("f", 12.0), ("e", 3.0), ("f", 3.0)] {
            let first = snapshot(1, true, &[("x", "e", 5.0)]);
            let deltas = Deltas::over(&[first, snapshot(2, true, &[("x", epoch, value)])]);
            assert_eq!(deltas.get("k", "x", "n"), Some(value), "{epoch} {value}");
            assert!(deltas.warnings[0].contains("1 and 2"), "{:?}", deltas.warnings);
        }
    }

    #[test]
    fn what_was_counted_around_a_reset_is_kept() {
        let values = [10.0, 25.0, 4.0, 9.0];
        let all: Vec<_> =
            values.iter().zip(1..).map(|(v, id)| snapshot(id, true, &[("x", "e", *v)])).collect();
        let deltas = Deltas::over(&all);
        assert_eq!(deltas.get("k", "x", "n"), Some(15.0 + 4.0 + 5.0));
        assert!(deltas.warnings[0].contains("2 and 3"));
    }

    #[test]
    fn what_was_counted_while_the_database_was_away_is_kept() {
        let away = Snapshot { id: 2, ..Snapshot::default() };
        let deltas = Deltas::over(&[
            snapshot(1, true, &[("x", "e", 5.0)]),
            away,
            snapshot(3, true, &[("x", "e", 12.0)]),
        ]);
        assert_eq!((deltas.get("k", "x", "n"), deltas.warnings.len()), (Some(7.0), 0));
    }

    #[test]
    fn a_new_item_counts_only_if_it_is_known_to_be_new() {
        for (complete, wanted) in [(true, Some(9.0)), (false, None)] {
            let deltas =
                Deltas::over(&[snapshot(1, complete, &[]), snapshot(2, complete, &[("x", "e", 9.0)])]);
            assert_eq!(deltas.get("k", "x", "n"), wanted);
        }
    }

    #[test]
    fn a_source_that_was_not_asked_before_counts_for_nothing() {
        let deltas =
            Deltas::over(&[Snapshot { id: 1, ..Snapshot::default() }, snapshot(2, true, &[("x", "e", 9.0)])]);
        assert_eq!(deltas.get("k", "x", "n"), None);
        assert!(deltas.warnings[0].contains("from snapshot 2 on"));
    }
}
