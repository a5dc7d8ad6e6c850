//! Compares a directory with the ledger of the programs that wrote it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use super::steps::{Content, RUN, State, Step, bytes, is_of};
use crate::ledger::{self, Entry, Verdict};

/// Options of `seawall-load check-files`.
#[derive(Clone, Debug, Args)]
pub struct CheckOptions {
    /// The directory of the files
    #[arg(long)]
    pub dir: PathBuf,
    /// The ledger of its load
    #[arg(long)]
    pub ledger: PathBuf,
}

/// Compares. A client whose files are in no state that they may be in counts as one missing step, and its files are named.
///
/// # Errors
/// Ledger or directory cannot be read.
pub fn check(options: &CheckOptions) -> Result<Verdict> {
    let entries = if options.ledger.exists() { ledger::read(&options.ledger)? } else { Vec::new() };
    let mut clients: BTreeMap<i32, BTreeSet<i64>> = BTreeMap::new();
    for entry in &entries {
        clients.entry(entry.client).or_default().insert(entry.seq);
    }
    let mut verdict =
        Verdict { acknowledged: entries.len() as u64, found: entries.len() as u64, ..Verdict::default() };
    for (client, steps) in clients {
        let Some(seq) = steps.last().copied() else { continue };
        let (entry, found) = (Entry { client, seq }, found(&options.dir, client)?);
        let allowed = allowed(client, seq, &steps);
        if !allowed.iter().any(|state| is(entry.client, state, &found)) {
            verdict.missing += 1;
            verdict.found -= 1;
            verdict.missing_examples.push(entry);
            verdict.integrity_errors.push(explain(entry, &allowed, &found));
        }
    }
    Ok(verdict)
}

/// What the client's files may be when this step was the last one that was acknowledged.
fn allowed(client: i32, seq: i64, steps: &BTreeSet<i64>) -> Vec<State> {
    if Step::of(client, seq) == Step::Begin {
        // What the run before it left, wherever that was, and some of it is removed.
        let before = steps.range(..seq).next_back();
        let left = before.map_or_else(|| vec![State::new()], |before| allowed(client, *before, steps));
        return left.iter().flat_map(subsets).collect();
    }
    let mut state = State::new();
    for seq in seq / RUN * RUN..=seq {
        state = Step::of(client, seq).through(client, seq, &state).pop().unwrap_or_default();
    }
    Step::of(client, seq + 1).through(client, seq + 1, &state)
}

/// Files that are removed one after the other, in the directory's order.
fn subsets(state: &State) -> Vec<State> {
    let names: Vec<_> = state.iter().collect();
    let subset = |bits: u32| {
        let kept = names.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1);
        kept.map(|(_, (name, content))| ((*name).clone(), **content)).collect()
    };
    (0..1 << names.len()).map(subset).collect()
}

/// The client's files, with all their bytes.
fn found(dir: &Path, client: i32) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_of(client, &name) {
            found.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(found)
}

fn is(client: i32, state: &State, found: &BTreeMap<String, Vec<u8>>) -> bool {
    let holds = |(name, content): (&String, &Content)| match (content, found.get(name)) {
        (Content::Any, Some(_)) => true,
        (Content::Of(seq), Some(has)) => *has == bytes(client, *seq),
        (_, None) => false,
    };
    state.len() == found.len() && state.iter().all(holds)
}

fn explain(entry: Entry, allowed: &[State], found: &BTreeMap<String, Vec<u8>>) -> String {
    let Entry { client, seq } = entry;
    let has = |(name, bytes): (&String, &Vec<u8>)| {
        let head = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        format!("{name}: {} bytes of {}", bytes.len(), head[..head.len().min(24)].escape_ascii())
    };
    format!(
        "client {client}, whose last acknowledged step was {seq}, has {:?}; it should have {:?}, and is in \
         {:?}",
        found.iter().map(has).collect::<Vec<_>>(),
        allowed.first(),
        Step::of(client, seq + 1)
    )
}
