//! The README's table: what a log on each medium brings, as the latest results of some cases say it.
//!
//! In: results of [`CASES`]. Out: a row for each, in ratios to the bare database of the same rounds, with durability
//! switched off beside them. A gain that is not shown ([`crate::verdict`]) has no figure.

use anyhow::{Context, Error, Result, ensure};
use seawall_page::regions;

use super::Results;
use super::judge::judge;
use crate::case::{Configuration, Medium, Role};
use crate::table::short;

/// The cases, and what their rows are called.
pub const CASES: [(&str, &str); 4] = [
    ("commits", "PostgreSQL, pgbench, 8 clients"),
    ("mariadb", "MariaDB, sysbench, 8 threads"),
    ("redis", "Redis, `appendfsync always`, 50 clients"),
    ("rocksdb", "RocksDB, synced puts, 4 threads"),
];
/// The region of the page.
const REGION: &str = "gains";
/// The columns after the load. The last one keeps nothing.
const COLUMNS: [(&str, Of); 5] = [
    ("persistent memory", Of::Medium(Medium::Dax)),
    ("the data's own disk", Of::Medium(Medium::Block)),
    ("memory of 3 other hosts, 50 µs away", Of::Medium(Medium::Replicated)),
    ("memory (emulated)", Of::Medium(Medium::Emulated)),
    ("no log: durability off", Of::Bound),
];

/// What a column is about.
#[derive(Clone, Copy)]
enum Of {
    Medium(Medium),
    Bound,
}

impl Of {
    fn is(self, c: &Configuration) -> bool {
        match self {
            Of::Medium(medium) => c.medium == Some(medium),
            Of::Bound => c.role == Role::Bound,
        }
    }
}

/// The page with its table as it has to be.
///
/// # Errors
/// If the page has no place for it, or a case was not measured.
pub fn rewrite(page: &str, all: &[Results]) -> Result<String> {
    let begin = regions::begin(REGION);
    ensure!(page.lines().any(|line| line == begin), "the page has no line {begin}");
    let table = table(all)?;
    let content = |name: &str, old: &str| Ok(if name == REGION { table.clone() } else { old.to_owned() });
    regions::rewrite(page, content).map_err(Error::msg)
}

fn table(all: &[Results]) -> Result<String> {
    let mut rows = Vec::new();
    for (name, title) in CASES {
        let results = all.iter().find(|results| results.case.name() == name);
        rows.push((
            title,
            results.with_context(|| format!("{name} was not measured: run `seawall lab run {name}`"))?,
        ));
    }
    let measured =
        |(_, of): &&(&str, Of)| rows.iter().any(|(_, r)| r.configurations.iter().any(|c| of.is(c)));
    let columns: Vec<_> = COLUMNS.iter().filter(measured).collect();
    ensure!(!columns.is_empty(), "only the bare databases were measured");
    let heads: Vec<_> = columns.iter().map(|(head, _)| *head).collect();
    let mut out = format!("| commits a second, times the bare database's | {} |\n|---|", heads.join(" | "));
    out += &"---:|".repeat(columns.len());
    out.push('\n');
    for (title, results) in &rows {
        let cells: Vec<_> = columns.iter().map(|(_, of)| cell(results, *of)).collect();
        out += &format!("| {title} | {} |\n", cells.join(" | "));
    }
    let (run, m) = (&rows[0].1.run, &rows[0].1.run.machine);
    let day = run.at.split(' ').next().unwrap_or_default();
    out += &format!(
        "\nMeasured {day} on {} CPUs, Linux {}, data on {}; {} rounds, configurations taking turns; the median, and the lowest \
         and highest round.\n",
        m.cpus, m.kernel, m.filesystem, run.rounds
    );
    Ok(out)
}

fn cell(results: &Results, of: Of) -> String {
    // Of several bounds the last one is the farthest.
    let Some(c) = results.configurations.iter().rev().find(|c| of.is(c)) else { return "–".into() };
    let found = judge(results, &c.name);
    match found.ratio.filter(|_| found.verdict.is_shown()) {
        Some(ratio) => format!("{} × ({}–{})", short(ratio.median), short(ratio.min), short(ratio.max)),
        None => found.verdict.in_words(),
    }
}
