//! Which keys the clients put, with which values, and how they are found again.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use clap::Args;

use super::connection::Connection;
use crate::ledger::Entry;
use crate::ledger_load::{Checked, Client, Found, Server};

/// Pairs in one reply.
const PAGE: usize = 2000;

/// Where an etcd is.
#[derive(Clone, Debug, Args)]
pub struct Etcd {
    /// Where the server takes clients: `127.0.0.1:2379`
    #[arg(long)]
    pub connect: String,
}

/// The same, and what is put there.
#[derive(Clone, Debug, Args)]
pub struct Puts {
    #[command(flatten)]
    etcd: Etcd,
    /// Bytes of a value
    #[arg(long, default_value_t = 256)]
    pub bytes: usize,
}

/// A client that puts.
pub struct Putter {
    etcd: Connection,
    number: i32,
    bytes: usize,
}

/// What all keys of a client begin with.
fn prefix_of(client: i32) -> String {
    format!("seawall/{client}/")
}

impl Server for Puts {
    type Client = Putter;

    fn connect(&self, number: i32) -> Result<(Putter, i64)> {
        let mut etcd = Connection::open(&self.etcd.connect)?;
        let last = etcd.count(&prefix_of(number))?;
        Ok((Putter { etcd, number, bytes: self.bytes }, last))
    }
}

impl Client for Putter {
    /// Keys sort as their numbers do. A value is its key, and as much behind it as is asked for.
    fn commit(&mut self, seq: i64) -> Result<()> {
        let key = format!("{}{seq:012}", prefix_of(self.number));
        let value = format!("{key} {}", "x".repeat(self.bytes.saturating_sub(key.len() + 1)));
        self.etcd.put(&key, &value)
    }
}

impl Checked for Etcd {
    /// The keys must be numbered without a gap, and each value name its key.
    fn find(&self, clients: &BTreeSet<i32>) -> Result<Found> {
        let mut etcd = Connection::open(&self.connect)?;
        let mut found = Found::default();
        for client in clients {
            let before = found.commits.len();
            let last = client_keys(&mut etcd, *client, &mut found)?;
            let held = (found.commits.len() - before) as i64;
            if held != last {
                found
                    .errors
                    .push(format!("client {client} has {held} keys, but the last one has number {last}"));
            }
        }
        Ok(found)
    }
}

/// The highest number.
fn client_keys(etcd: &mut Connection, client: i32, found: &mut Found) -> Result<i64> {
    let prefix = prefix_of(client);
    let (mut from, mut last) = (prefix.clone(), 0);
    loop {
        let page = etcd.range(&prefix, &from, PAGE)?;
        for (key, value) in &page {
            let seq = key
                .strip_prefix(&prefix)
                .and_then(|seq| seq.parse().ok())
                .with_context(|| format!("this load did not write the key {key}"))?;
            if value.split(' ').next() != Some(key) {
                found.errors.push(format!("{key} holds another key's value"));
            }
            found.commits.insert(Entry { client, seq });
            last = last.max(seq);
        }
        match page.last() {
            Some((key, _)) if page.len() == PAGE => from = format!("{key}\0"),
            _ => return Ok(last),
        }
    }
}
