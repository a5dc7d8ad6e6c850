//! Statements by time, and tables by physical reads.

use std::collections::BTreeMap;

use super::{File, Period, Statement};
use crate::database::MARK;
use crate::delta::{Delta, Deltas};

const STATEMENTS: usize = 30;
const FILES: usize = 30;

/// Fills in both.
pub fn fill(period: &mut Period, deltas: &Deltas) {
    let (own, mut statements): (Vec<_>, Vec<_>) =
        statements(deltas).into_iter().partition(|s| s.text.contains(MARK));
    period.capture_server_s = (!statements.is_empty()).then(|| own.iter().map(|s| s.time_s).sum());
    statements.truncate(STATEMENTS);
    period.statements = statements;
    period.files = tables(deltas);
}

fn statements(deltas: &Deltas) -> Vec<Statement> {
    let mut by_id: BTreeMap<String, Statement> = BTreeMap::new();
    for (item, delta) in deltas.of("pg_stat_statements") {
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
    counter("total_exec_time").or_else(|| counter("total_time")).unwrap_or(0.0)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn tables(deltas: &Deltas) -> Vec<File> {
    let reads = |file: &File| {
        let counter = |name: &str| file.counters.get(name).copied().unwrap_or(0.0);
        counter("heap_blks_read") + counter("idx_blks_read") + counter("toast_blks_read")
    };
    let file = |(name, delta): (&str, &Delta)| File { name: name.into(), counters: delta.counters.clone() };
    let mut all: Vec<_> = deltas.of("pg_statio_tables").map(file).filter(|f| reads(f) > 0.0).collect();
    all.sort_by(|a, b| reads(b).total_cmp(&reads(a)));
    all.truncate(FILES);
    all
}
