//! Statements by time, tables by physical reads and by rows changed.

use std::collections::BTreeMap;

use super::figures::{File, Period, Statement};
use crate::database::MARK;
use crate::delta::{Delta, Deltas};

/// Where statements are counted, whatever the database.
const KINDS: [&str; 3] = ["pg_stat_statements", "performance_schema digest", "redis command"];
const STATEMENTS: usize = 30;
const FILES: usize = 30;

/// Fills in all of them.
pub fn fill(period: &mut Period, deltas: &Deltas) {
    let (own, mut statements): (Vec<_>, Vec<_>) =
        statements(deltas).into_iter().partition(|s| s.text.contains(MARK));
    let marked = period.target.product == "PostgreSQL" && !statements.is_empty();
    period.capture_server_s = marked.then(|| own.iter().map(|s| s.time_s).sum());
    statements.truncate(STATEMENTS);
    period.statements = statements;
    period.files =
        tables(deltas, "pg_statio_tables", &["heap_blks_read", "idx_blks_read", "toast_blks_read"]);
    period.changed = tables(deltas, "pg_stat_tables", &["n_tup_ins", "n_tup_upd", "n_tup_del"]);
}

fn statements(deltas: &Deltas) -> Vec<Statement> {
    let mut by_id: BTreeMap<String, Statement> = BTreeMap::new();
    for (item, delta) in KINDS.iter().flat_map(|kind| deltas.of(kind)) {
        // The same statement of several users and databases is one here.
        let id = item.split('.').next().unwrap_or(item);
        let statement = by_id.entry(id.into()).or_default();
        statement.id = id.into();
        statement.text = delta.facts.get("query").map(|text| one_line(text)).unwrap_or_default();
        let counters = &mut statement.counters;
        delta.counters.iter().for_each(|(name, n)| *counters.entry(name.clone()).or_default() += n);
        statement.time_s += time_ms(delta) / 1e3;
    }
    let mut all: Vec<_> = by_id.into_values().filter(|s| s.time_s > 0.0).collect();
    all.sort_by(|a, b| b.time_s.total_cmp(&a.time_s));
    all
}

fn time_ms(delta: &Delta) -> f64 {
    let counter = |name: &str| delta.counters.get(name).copied();
    ["total_exec_time", "total_time", "time_ms"].into_iter().find_map(counter).unwrap_or(0.0)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Those with most of some counters.
fn tables(deltas: &Deltas, kind: &str, by: &[&str]) -> Vec<File> {
    let sum = |file: &File| by.iter().filter_map(|name| file.counters.get(*name)).sum::<f64>();
    let file = |(name, delta): (&str, &Delta)| File { name: name.into(), counters: delta.counters.clone() };
    let mut all: Vec<_> = deltas.of(kind).map(file).filter(|f| sum(f) > 0.0).collect();
    all.sort_by(|a, b| sum(b).total_cmp(&sum(a)));
    all.truncate(FILES);
    all
}
