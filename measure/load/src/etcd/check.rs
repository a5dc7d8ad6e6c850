//! Compares the ledger with what etcd holds.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use super::connection::Connection;
use super::keys::prefix_of;
use crate::ledger::{self, Entry, Verdict};

/// Pairs in one reply.
const PAGE: usize = 2000;

/// Options of `seawall-load check-etcd`.
#[derive(Clone, Debug, Args)]
pub struct CheckOptions {
    /// Where the server takes clients
    #[arg(long)]
    pub connect: String,
    /// The ledger its load wrote
    #[arg(long)]
    pub ledger: PathBuf,
}

/// Every ledger line must be a key, numbered without a gap, whose value names it.
pub fn check(options: &CheckOptions) -> Result<Verdict> {
    let acknowledged = ledger::read(&options.ledger)?;
    let mut etcd = Connection::open(&options.connect)?;
    let clients: BTreeSet<i32> = acknowledged.iter().map(|entry| entry.client).collect();
    let (mut found, mut errors) = (HashSet::new(), Vec::new());
    for client in clients {
        let before = found.len();
        let last = client_keys(&mut etcd, client, &mut found, &mut errors)?;
        let held = (found.len() - before) as i64;
        if held != last {
            errors.push(format!("client {client}: {held} keys, the last one has number {last}"));
        }
    }
    let mut verdict = Verdict::compare(&acknowledged, &found);
    verdict.integrity_errors = errors;
    Ok(verdict)
}

/// The highest number.
fn client_keys(
    etcd: &mut Connection,
    client: i32,
    found: &mut HashSet<Entry>,
    errors: &mut Vec<String>,
) -> Result<i64> {
    let prefix = prefix_of(client);
    let (mut from, mut last) = (prefix.clone(), 0);
    loop {
        let page = etcd.range(&prefix, &from, PAGE)?;
        for (key, value) in &page {
            let seq = key.strip_prefix(&prefix).and_then(|seq| seq.parse().ok()).context("a foreign key")?;
            if value.split(' ').next() != Some(key) {
                errors.push(format!("{key} holds another key's value"));
            }
            found.insert(Entry { client, seq });
            last = last.max(seq);
        }
        match page.last() {
            Some((key, _)) if page.len() == PAGE => from = format!("{key}\0"),
            _ => return Ok(last),
        }
    }
}
