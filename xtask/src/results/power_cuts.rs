//! Power cuts of real databases: a campaign that may have been carried out in parts, whose totals are added up.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::figures::shown;

/// The results that were written apart: of `powercuts.json` those called `powercuts-*.json`.
pub fn parts(dir: &Path, file: &str) -> Vec<PathBuf> {
    let Some(stem) = file.strip_suffix(".json").filter(|stem| *stem == "powercuts") else {
        return Vec::new();
    };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let is_part = |name: &str| name.starts_with(&format!("{stem}-")) && name.ends_with(".json");
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_part))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// Adds another campaign's totals: those of the same database and side to the same row.
pub fn add_totals(whole: &mut Value, part: &Value) {
    let (Some(rows), Some(more)) = (whole["totals"].as_array_mut(), part["totals"].as_array()) else {
        return;
    };
    for total in more {
        let same = |row: &&mut Value| {
            ["database", "side"].iter().all(|name| row[*name] == total[*name])
                && front(row) == front(total)
                && log_on_disk(row) == log_on_disk(total)
        };
        let Some(row) = rows.iter_mut().find(same) else {
            rows.push(total.clone());
            continue;
        };
        for (name, value) in total.as_object().into_iter().flatten().filter(|(_, value)| value.is_u64()) {
            row[name] = (row[name].as_u64().unwrap_or(0) + value.as_u64().unwrap_or(0)).into();
        }
    }
}

/// True for a control without Seawall.
fn is_bare(total: &Value) -> bool {
    matches!(total["side"].as_str(), Some("synced" | "unsafe" | "torn"))
}

/// What distinguishes rounds whose database ran on a mount, where controls without Seawall are the same, or in a guest, where
/// they are not.
fn front(total: &Value) -> &'static str {
    match total["front"].as_str() {
        Some("mount") if !is_bare(total) => " on the mount",
        Some("disk") => " in a guest",
        _ => "",
    }
}

/// True for rounds whose log lay on the disk that was cut; controls without Seawall have none.
fn log_on_disk(total: &Value) -> bool {
    total["medium"] == "disk" && !is_bare(total)
}

/// What is counted, and the heading of its column.
const COUNTED: [(&str, &str); 7] = [
    ("rounds", "rounds"),
    ("cuts", "cuts"),
    ("sectors_lost", "sectors lost"),
    ("acknowledged", "commits acknowledged"),
    ("lost", "**lost**"),
    ("rounds_with_problems", "rounds with a problem"),
    ("rounds_unchecked", "rounds not checked in time"),
];

/// What real databases went through, a row for each kind of round.
pub fn rows(result: &Value) -> Option<Vec<Vec<String>>> {
    let headings = ["database", "side"].into_iter().chain(COUNTED.map(|(_, heading)| heading));
    let mut rows = vec![headings.map(str::to_owned).collect()];
    for total in result["totals"].as_array()? {
        let log = if log_on_disk(total) { ", log on the disk" } else { "" };
        let mut row = vec![shown(&total["database"]), shown(&total["side"]) + front(total) + log];
        row.extend(COUNTED.iter().map(|(name, _)| shown(&total[*name])));
        rows.push(row);
    }
    Some(rows)
}
