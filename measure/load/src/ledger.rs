//! The ledger: what the database acknowledged, kept outside the database.
//!
//! One line per acknowledged commit, appended with a single `write` to a file opened with
//! `O_APPEND`, before the next transaction of that client starts. A line in the page cache survives
//! `kill -9` of every process involved, which is what the ledger tests do to them. (It does not
//! survive a power cut; tests that cut the power keep the ledger on another machine.)
//!
//! A line is `client sequence`. A last line without its newline is a kill between `write`'s start
//! and end: it never counts, because its commit was never reported.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::sys::{Fd, OpenMode};

/// One acknowledged commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    /// The connection that got the acknowledgement.
    pub client: i32,
    /// Its own running number.
    pub seq: i64,
}

/// Appends acknowledged commits.
pub struct Writer(Fd);

impl Writer {
    /// Opens (or creates) the ledger for appending.
    pub fn open(path: &Path) -> Result<Self> {
        let fd = Fd::open(path, OpenMode::Append)
            .with_context(|| format!("cannot open the ledger {}", path.display()))?;
        Ok(Writer(fd))
    }

    /// Notes one acknowledged commit; when this returns, the line outlives this process.
    pub fn acknowledge(&self, entry: Entry) -> Result<()> {
        let line = format!("{} {}\n", entry.client, entry.seq);
        self.0.write_all(line.as_bytes()).context("cannot append to the ledger")
    }
}

/// Reads the whole ledger back.
pub fn read(path: &Path) -> Result<Vec<Entry>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the ledger {}", path.display()))?;
    let complete = match text.rfind('\n') {
        Some(end) => &text[..end],
        None => return Ok(Vec::new()),
    };
    complete.lines().enumerate().map(|(i, line)| parse(line, i + 1)).collect()
}

fn parse(line: &str, number: usize) -> Result<Entry> {
    let mut words = line.split(' ');
    let (Some(client), Some(seq), None) = (words.next(), words.next(), words.next()) else {
        bail!("ledger line {number} is not `client sequence`: {line:?}");
    };
    let entry = client.parse().and_then(|client| Ok(Entry { client, seq: seq.parse()? }));
    entry.with_context(|| format!("ledger line {number}: {line:?}"))
}

/// What comparing a ledger with a database found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Commits the database had acknowledged.
    pub acknowledged: u64,
    /// Commits the database holds.
    pub found: u64,
    /// Acknowledged, and not in the database: data loss.
    pub missing: u64,
    /// The first few of them.
    pub missing_examples: Vec<Entry>,
    /// In the database, never acknowledged: in flight at the kill. At most one per client is normal.
    pub unacknowledged: u64,
    /// The database's own checker and the load's invariants; empty is good.
    pub integrity_errors: Vec<String>,
}

impl Verdict {
    /// Compares the two sets.
    pub fn compare(acknowledged: &[Entry], found: &HashSet<Entry>) -> Self {
        let mut missing: Vec<Entry> = acknowledged.iter().filter(|e| !found.contains(e)).copied().collect();
        missing.sort_unstable();
        let distinct: HashSet<_> = acknowledged.iter().collect();
        let unacknowledged = found.iter().filter(|e| !distinct.contains(e)).count();
        Verdict {
            acknowledged: acknowledged.len() as u64,
            found: found.len() as u64,
            missing: missing.len() as u64,
            missing_examples: missing.into_iter().take(10).collect(),
            unacknowledged: unacknowledged as u64,
            integrity_errors: Vec::new(),
        }
    }

    /// Nothing acknowledged is missing, and the database finds itself sound.
    pub fn is_clean(&self) -> bool {
        self.missing == 0 && self.integrity_errors.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(client: i32, seq: i64) -> Entry {
        Entry { client, seq }
    }

    #[test]
    fn what_was_appended_reads_back_and_a_torn_last_line_does_not_count() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("ledger");
        let writer = Writer::open(&path)?;
        writer.acknowledge(entry(1, 1))?;
        writer.acknowledge(entry(2, 1))?;
        assert_eq!(read(&path)?, [entry(1, 1), entry(2, 1)]);
        writer.0.write_all(b"1 2")?;
        assert_eq!(read(&path)?.len(), 2);
        Ok(())
    }

    #[test]
    fn a_garbled_line_is_named() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("ledger");
        std::fs::write(&path, "1 1\n1 x\n")?;
        assert!(format!("{:#}", read(&path).unwrap_err()).contains("line 2"));
        Ok(())
    }

    #[test]
    fn a_missing_commit_is_named() {
        let found = HashSet::from([entry(1, 1), entry(1, 3)]);
        let verdict = Verdict::compare(&[entry(1, 1), entry(1, 2)], &found);
        assert_eq!((verdict.missing, verdict.unacknowledged), (1, 1));
        assert_eq!(verdict.missing_examples, [entry(1, 2)]);
        assert!(!verdict.is_clean());
    }
}
