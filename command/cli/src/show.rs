//! Tables for people, JSON for scripts.

use anyhow::Result;
use serde::Serialize;

/// Prints a value as JSON.
pub fn json(value: &impl Serialize) -> Result<()> {
    outln!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

/// A table: the first column flush left, the others flush right.
pub fn table(head: &[&str], rows: &[Vec<String>]) {
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).chain([head[i].chars().count()]).max();
    let widths: Vec<_> = (0..head.len()).map(|i| width(i).unwrap_or(0)).collect();
    let head: Vec<_> = head.iter().map(ToString::to_string).collect();
    for row in std::iter::once(&head).chain(rows) {
        let cells = row.iter().zip(&widths).enumerate().map(|(i, (cell, width))| {
            if i == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        outln!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

/// A name and its value. Further values of one name stand below it, without a name.
pub type Fact = (&'static str, String);

/// `name   value` lines.
pub fn facts(facts: &[(&str, String)]) {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in facts {
        outln!("{name:<width$}  {value}");
    }
}

/// Nanoseconds for people.
pub fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.2} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}
