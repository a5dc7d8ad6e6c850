//! The tables of `docs/internals/CACHE.md`: traces, sizes and algorithms, and structs of the zone; and how a recorded trace gets
//! into the tree.

use std::path::Path;

use seawall_cache::shared::{FileRecord, Header, StoreHeader};
use seawall_cache_study::algorithm::Kind;
use seawall_cache_study::simulate::{Counts, optimum, run, without};
use seawall_cache_study::trace::{Recording, Trace, encode, synthetic};

use crate::fields::Struct;
use crate::table;

/// The page the tables are on.
pub const CACHE_PAGE: &str = "docs/internals/CACHE.md";

/// Percents of the blocks a trace reads: the page cache in front (0: the database reads with O_DIRECT), and ours.
const SIZES: [(usize, usize); 4] = [(0, 10), (0, 40), (25, 10), (25, 67)];

/// The content of the region `name`.
///
/// # Errors
/// An unknown name, a recorded trace that is damaged, or a field without a sentence.
pub fn region(name: &str, old: &str) -> Result<String, String> {
    match name {
        "algorithms" => algorithms(),
        "Header" => structure(name, Header::FIELDS, old),
        "FileRecord" => structure(name, FileRecord::FIELDS, old),
        "StoreHeader" => structure(name, StoreHeader::FIELDS, old),
        _ => Err(format!("nothing is generated under the name {name:?}")),
    }
}

/// The table of a struct in the zone.
fn structure(
    name: &str,
    fields: (&'static [(&'static str, usize)], usize),
    old: &str,
) -> Result<String, String> {
    let table = table::render(&Struct::of(fields), old);
    table.map(|table| format!("\n{table}\n")).map_err(|field| format!("{name}.{field} has no sentence"))
}

/// Every trace, size and algorithm: reads that did not go to the disk, and blocks admitted, in percent of the reads.
/// The last row is the mean of those that read anything.
///
/// # Errors
/// A recorded trace that is damaged.
pub fn algorithms() -> Result<String, String> {
    let names = Kind::ALL.map(Kind::name).join(" | ");
    let mut out = format!("\n| trace | page cache | ours | without | {names} | optimum |\n|---|");
    out.push_str(&"---:|".repeat(Kind::ALL.len() + 4));
    out.push('\n');
    let mut all: Vec<Vec<Cell>> = Vec::new();
    for trace in Trace::recorded()?.into_iter().chain(synthetic::all()) {
        if trace.blocks() == 0 {
            out.push_str(&format!("| {} | 0 % | 10 % |{}\n", trace.name, " – |".repeat(Kind::ALL.len() + 2)));
            continue;
        }
        for (pages, ours) in SIZES {
            let cells = row(&trace, pages, ours);
            out.push_str(&format!("| {} | {pages} % | {ours} % | {} |\n", trace.name, text(&cells)));
            all.push(cells);
        }
    }
    let mean = |column: usize| Cell::mean(all.iter().map(|row| row[column]));
    let means: Vec<Cell> = (0..Kind::ALL.len() + 2).map(mean).collect();
    out.push_str(&format!("| **mean** | | | {} |\n\n", text(&means)));
    Ok(out)
}

/// Without a cache, with each algorithm, and the optimum.
fn row(trace: &Trace, pages: usize, ours: usize) -> Vec<Cell> {
    let part = |percent: usize| trace.blocks() * percent / 100;
    let (pages, ours) = (part(pages), part(ours));
    let spared = |counts: Counts| Cell { spared: counts.spared_percent(), admitted: None };
    let with = |kind| {
        let counts = run(trace, kind, pages, ours);
        Cell { spared: counts.spared_percent(), admitted: Some(counts.admitted_percent()) }
    };
    let [alone, best] = [without(trace, pages), optimum(trace, pages, ours)].map(spared);
    [alone].into_iter().chain(Kind::ALL.map(with)).chain([best]).collect()
}

fn text(cells: &[Cell]) -> String {
    let cell = |cell: &Cell| match cell.admitted {
        Some(admitted) => format!("{:.1} · {admitted:.1}", cell.spared),
        None => format!("{:.1}", cell.spared),
    };
    cells.iter().map(cell).collect::<Vec<_>>().join(" | ")
}

/// Percents of the reads.
#[derive(Clone, Copy)]
struct Cell {
    spared: f64,
    admitted: Option<f64>,
}

impl Cell {
    fn mean(cells: impl Iterator<Item = Self> + Clone) -> Self {
        let count = cells.clone().count().max(1) as f64;
        let admitted = cells.clone().map(|cell| cell.admitted).sum::<Option<f64>>();
        Self {
            spared: cells.map(|cell| cell.spared).sum::<f64>() / count,
            admitted: admitted.map(|sum| sum / count),
        }
    }
}

/// Makes a trace of the tree out of what strace wrote.
///
/// # Errors
/// What could not be read, understood or written.
pub fn record(strace: &Path, of: Recording<'_>, to: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(strace).map_err(|e| format!("{}: {e}", strace.display()))?;
    let accesses = of.accesses(&text).map_err(|e| format!("{}: {e}", strace.display()))?;
    let bytes = encode(&accesses);
    std::fs::write(to, &bytes).map_err(|e| format!("{}: {e}", to.display()))?;
    let trace = Trace { name: String::new(), accesses };
    println!(
        "{}: {} accesses, {} blocks read, {} bytes",
        to.display(),
        trace.accesses.len(),
        trace.blocks(),
        bytes.len()
    );
    Ok(())
}
