//! Compares the ledger with what Redis holds.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::connection::{Connection, Reply};
use super::keys::{count_of, set_of};
use crate::ledger::{self, Entry, Verdict};

/// Options of `seawall-load check-redis`.
#[derive(Clone, Debug, Args)]
pub struct CheckOptions {
    /// The server's socket
    #[arg(long)]
    pub socket: PathBuf,
    /// The ledger its load wrote
    #[arg(long)]
    pub ledger: PathBuf,
}

/// Every ledger line must be in its client's set, and each set as large as its count.
pub fn check(options: &CheckOptions) -> Result<Verdict> {
    let acknowledged = ledger::read(&options.ledger)?;
    let mut redis = Connection::open(&options.socket)?;
    let clients: BTreeSet<i32> = acknowledged.iter().map(|entry| entry.client).collect();
    let (mut found, mut errors) = (HashSet::new(), Vec::new());
    for client in clients {
        let members = members(&mut redis, client)?;
        let count = redis.call(&["GET", &count_of(client)])?.number().unwrap_or(0);
        if members.len() as i64 != count {
            errors.push(format!(
                "client {client}: {} in the set, the count says {count}: a torn transaction",
                members.len()
            ));
        }
        found.extend(members.into_iter().map(|seq| Entry { client, seq }));
    }
    let mut verdict = Verdict::compare(&acknowledged, &found);
    verdict.integrity_errors = errors;
    Ok(verdict)
}

fn members(redis: &mut Connection, client: i32) -> Result<Vec<i64>> {
    match redis.call(&["SMEMBERS", &set_of(client)])? {
        Reply::List(Some(members)) => {
            members.iter().map(|seq| seq.number().context("a member that is no number")).collect()
        }
        other => bail!("SMEMBERS replied {other:?}"),
    }
}
