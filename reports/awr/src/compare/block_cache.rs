//! The block caches of two periods side by side.

use seawall_page::scale::{bytes, digits, time};
use seawall_page::{Section, Table};

use super::cells::{dash, difference};
use super::comparison::Comparison;
use crate::period::{BlockCache, Period};
use crate::report::cache_means;

/// A row: its name, how to show a figure, and the figure.
type Row = (&'static str, fn(f64) -> String, fn(&Period, &BlockCache) -> Option<f64>);

const ROWS: [Row; 9] = [
    ("Size", bytes, |_, c| Some(c.end("size"))),
    ("In use at the end %", one, |_, c| c.used_percent()),
    ("Reads answered %", one, |_, c| c.hit_percent()),
    ("Hits/s", digits, |p, c| Some(p.per_second(c.hits))),
    ("Reads of the disk/s", digits, |p, c| Some(p.per_second(c.misses))),
    ("Mean of a hit", time, |p, _| cache_means(p)[0]),
    ("Mean of a read of the disk", time, |p, _| cache_means(p)[1]),
    ("Blocks admitted/s", digits, |p, c| Some(p.per_second(c.admitted))),
    ("Files not served at the end", digits, |_, c| Some(c.end("files_not_served"))),
];

fn one(value: f64) -> String {
    format!("{value:.1}")
}

/// The section; empty if neither period has a cache.
pub fn section(c: &Comparison) -> Section {
    let mut section = Section::new("Seawall: Block Cache");
    let periods = [&c.first, &c.second];
    if periods.iter().all(|period| period.block_cache.is_none()) {
        return section;
    }
    let mut table = Table::new("", &["<", "1st", "2nd", "%Diff"]);
    for (name, show, of) in ROWS {
        let values = periods.map(|period| period.block_cache.as_ref().and_then(|cache| of(period, cache)));
        let [a, b] = values.map(|value| dash(value.map(show)));
        table.row([name.into(), a, b, difference(values)]);
    }
    let [a, b] =
        periods.map(|period| dash(period.block_cache.as_ref().map(|cache| cache.medium_name.clone())));
    table.row(["Medium".into(), a, b, String::new()]);
    let off = periods.map(|period| {
        let why = period.block_cache.as_ref().map(|cache| cache.off.clone());
        dash(why.map(|why| if why.is_empty() { "no".into() } else { why }))
    });
    let [a, b] = off;
    table.row(["Off at the end".into(), a, b, String::new()]);
    section.table(table);
    section
}
