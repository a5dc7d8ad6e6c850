//! Two periods side by side, and what their figures really show.
//!
//! Input: two [`Period`]s. Output: a [`Comparison`]: load profile, timed events with the rule of the dash (what a
//! period lacks shows "-", never 0), differences normalised by DB time with the largest first, changed settings
//! and statements, and verdicts. A verdict never says more than one run on each side can show.

mod block_cache;
mod cells;
mod comparison;
mod document;
mod events;
mod judge;
mod keepers;
mod verdict;

pub use comparison::{Changed, Comparison, EventPair, Known, LoadPair, StatementPair, percent_difference};
pub use document::document;
pub use verdict::{Verdict, What};

use crate::period::{Period, Statement};

/// Puts two periods side by side.
pub fn compare(first: Period, second: Period, known: Known) -> Comparison {
    let mut comparison = Comparison {
        load: load(&first, &second),
        events: events::pairs(&first, &second, |p| &p.events),
        background: events::pairs(&first, &second, |p| &p.background),
        settings: settings(&first, &second),
        statements: statements(&first, &second),
        verdicts: Vec::new(),
        first,
        second,
    };
    comparison.verdicts = judge::judge(&comparison, known);
    comparison
}

fn load(first: &Period, second: &Period) -> Vec<LoadPair> {
    let mut names: Vec<_> = first.load.iter().map(|row| (&row.name, &row.unit)).collect();
    names.extend(
        second
            .load
            .iter()
            .map(|row| (&row.name, &row.unit))
            .filter(|row| !first.load.iter().any(|f| f.name == *row.0)),
    );
    let pair = |(name, unit): (&String, &String)| {
        let total = |p: &Period| p.load.iter().find(|row| row.name == *name).map(|row| row.total);
        let per_transaction = |p: &Period| {
            let transactions = p.transactions.filter(|n| *n > 0.0 && !name.starts_with("Transactions"))?;
            Some(total(p)? / transactions)
        };
        LoadPair {
            name: name.clone(),
            unit: unit.clone(),
            per_second: [first, second].map(|p| total(p).map(|t| p.per_second(t))),
            per_transaction: [first, second].map(per_transaction),
        }
    };
    names.into_iter().map(pair).collect()
}

fn settings(first: &Period, second: &Period) -> Vec<Changed> {
    if first.settings.is_empty() || second.settings.is_empty() {
        return Vec::new();
    }
    let names: std::collections::BTreeSet<_> = first.settings.keys().chain(second.settings.keys()).collect();
    let changed = names.into_iter().map(|name| Changed {
        name: name.clone(),
        values: [first, second].map(|p| p.settings.get(name).cloned()),
    });
    changed.filter(|c| c.values[0] != c.values[1]).collect()
}

fn statements(first: &Period, second: &Period) -> Vec<StatementPair> {
    let mut ids: Vec<&Statement> = first.statements.iter().collect();
    ids.extend(second.statements.iter().filter(|s| !first.statements.iter().any(|f| f.id == s.id)));
    let pair = |statement: &Statement| {
        let of = |p: &Period| p.statements.iter().find(|s| s.id == statement.id).cloned();
        let both = [of(first), of(second)];
        let periods = [first, second];
        let each = |f: &dyn Fn(&Period, &Statement) -> Option<f64>| {
            std::array::from_fn(|i| both[i].as_ref().and_then(|s| f(periods[i], s)))
        };
        let calls = |s: &Statement| s.counters.get("calls").copied();
        StatementPair {
            id: statement.id.clone(),
            text: statement.text.clone(),
            share: each(&|p, s| p.share(s.time_s)),
            calls_per_second: each(&|p, s| calls(s).map(|n| p.per_second(n))),
            mean_ns: each(&|_, s| calls(s).filter(|n| *n > 0.0).map(|n| s.time_s * 1e9 / n)),
        }
    };
    let mut pairs: Vec<_> = ids.into_iter().map(pair).collect();
    pairs.sort_by(|a, b| events::distance(b.share).total_cmp(&events::distance(a.share)));
    pairs
}
