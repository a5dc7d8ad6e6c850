//! A database of many files under the policy `atomic`: all of them are to be in the log's table.

use std::path::Path;

use seawall_core::format::Layout;
use seawall_core::policy::{Manage, by_preset};
use seawall_daemon::AddRoot;
use seawall_wire::shm::{Policy, Preset};

use super::join::Link;

/// The data files of the database that are there now. None under another policy, which has few.
pub fn count(roots: &[AddRoot]) -> usize {
    roots.iter().filter(|root| root.policy == Policy::Atomic.name()).map(below).sum()
}

fn below(root: &AddRoot) -> usize {
    let Some(preset) = Preset::from_name(&root.preset) else { return 0 };
    let is_managed = |path: &Path| {
        let below = path.strip_prefix(&root.path).unwrap_or(path);
        by_preset(preset, Policy::Atomic, below.as_os_str().as_encoded_bytes()) == Manage::Now
    };
    let mut found = 0;
    let mut directories = vec![root.path.clone()];
    while let Some(dir) = directories.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => directories.push(entry.path()),
                Ok(kind) if kind.is_file() && is_managed(&entry.path()) => found += 1,
                _ => {}
            }
        }
    }
    found
}

/// Warns once, before the database starts: a table that is too small lets pages tear.
pub fn warn(link: &Link) {
    let files = count(link.roots());
    // Nobody waits for an answer where there is nothing to ask.
    let status = (files > 0).then(|| link.status()).flatten();
    let Some(most) = status.map(|status| status.files_max as usize).filter(|most| *most < files) else {
        return;
    };
    errln!(
        "seawall: WARNING: the database has {files} data files, and this log manages {most} at a time: while that many are \
         open, pages of others can TEAR. {}",
        what_helps(files)
    );
}

/// No log helps a database of more files than the largest table has entries.
fn what_helps(files: usize) -> String {
    let most = Layout::MOST_FILES;
    if files <= most as usize {
        return format!(
            "A new log with --size 1G manages {most}; the limit on descriptors must allow two for each file \
             (ulimit -Hn)"
        );
    }
    format!(
        "No log manages more than {most}: have fewer open at a time (PostgreSQL: max_files_per_process, for all \
         backends together), or leave full pages and doublewrite on"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_log_is_not_advised_where_none_is_large_enough() {
        assert!(what_helps(4096).contains("--size 1G"));
        let none = what_helps(4097);
        assert!(none.contains("No log manages more than 4096") && !none.contains("--size"), "{none}");
        let largest = Layout::for_size(1 << 40).expect("a pool");
        assert_eq!(Layout::for_size(1 << 30).map(|layout| layout.files), Some(largest.files));
        assert_eq!(largest.files, Layout::MOST_FILES);
    }
}
