//! The files that a rule is for, as they are now.

use std::path::{Path, PathBuf};

use seawall_daemon::cache::{Covers, Rule};

/// The files, in the order of their names. It leaves out those that it cannot look at.
pub fn of(rule: &Rule) -> Vec<PathBuf> {
    let mut found = Vec::new();
    match rule.covers {
        Covers::Tree => collect(&rule.path, &mut found),
        Covers::Relation => {
            let entries = rule.path.parent().and_then(|dir| std::fs::read_dir(dir).ok());
            let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
            found.extend(paths.filter(|path| rule.matches(path)));
        }
    }
    found.sort();
    found
}

fn collect(path: &Path, found: &mut Vec<PathBuf>) {
    let Ok(stat) = std::fs::symlink_metadata(path) else { return };
    if stat.is_file() {
        found.push(path.into());
    } else if stat.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.for_each(|entry| collect(&entry.path(), found));
    }
}

/// Bytes of these files.
pub fn bytes(rule: &Rule) -> u64 {
    of(rule).iter().filter_map(|path| Some(std::fs::metadata(path).ok()?.len())).sum()
}
