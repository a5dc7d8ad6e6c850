//! The keys of `bench.json`, as docs/measure/BENCHMARKS.md has them, for tests: what a section writes is compared with the
//! table of its section there.
//!
//! A row is `| `name` | meaning |`. Behind `±` a name stands for itself and for its extremes, `name_min` and `name_max`;
//! `SIDE` in it stands for each of the sides of the write load.

use std::fs;
use std::path::Path;

use super::measure::{SIDES, key};

/// The sections of the page that have a table of keys, in its order.
pub fn sections() -> Vec<String> {
    tables().into_iter().map(|(name, _)| name).collect()
}

/// The keys of a section as they must stand in the file.
pub fn of(section: &str) -> Vec<String> {
    let tables = tables();
    let (_, rows) = tables
        .iter()
        .find(|(name, _)| name == section)
        .unwrap_or_else(|| panic!("{section} has no table of keys on the page"));
    rows.iter().flat_map(|row| expanded(row)).collect()
}

/// Each section's rows, from below the header `| key | |`.
fn tables() -> Vec<(String, Vec<String>)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measure/BENCHMARKS.md");
    let page = fs::read_to_string(page).expect("the page");
    let mut tables = Vec::new();
    for section in page.split("\n## ").skip(1) {
        let name = section.lines().next().and_then(|line| line.strip_prefix('`')?.strip_suffix('`'));
        let table = section.split_once("\n| key | |\n|---|---|\n");
        if let (Some(name), Some((_, table))) = (name, table) {
            let rows = table.lines().take_while(|line| line.starts_with('|')).map(str::to_owned);
            tables.push((name.to_owned(), rows.collect()));
        }
    }
    tables
}

fn expanded(row: &str) -> Vec<String> {
    let (name, rest) = row.strip_prefix("| `").and_then(|row| row.split_once('`')).expect("a key");
    let endings: &[&str] = if rest.starts_with(" ±") { &["", "_min", "_max"] } else { &[""] };
    let names = match name.contains("SIDE") {
        true => SIDES.map(|side| name.replace("SIDE", key(side))).to_vec(),
        false => vec![name.to_owned()],
    };
    names.iter().flat_map(|name| endings.iter().map(move |ending| format!("{name}{ending}"))).collect()
}

#[test]
fn each_side_and_each_extreme_is_a_key() {
    let keys = of("write_fdatasync");
    for key in ["bs", "seawall_us", "fs_sync_us_min", "fs_nosync_us_max", "eatmydata_longest_us", "speedup"] {
        assert!(keys.iter().any(|name| name == key), "{key}");
    }
}
