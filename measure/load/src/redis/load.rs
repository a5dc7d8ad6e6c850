//! Where a client's numbers are: in a set, and how many there are in it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::connection::{Connection, Reply};
use crate::ledger::Entry;
use crate::ledger_load::{Checked, Client, Found, Server};

/// Where a Redis is.
#[derive(Clone, Debug, Args)]
pub struct Redis {
    /// The server's socket
    #[arg(long)]
    pub socket: PathBuf,
}

/// A client that adds to its set.
pub struct Adder {
    redis: Connection,
    set: String,
    count: String,
}

fn set_of(client: i32) -> String {
    format!("seawall:{client}")
}

fn count_of(client: i32) -> String {
    format!("seawall-count:{client}")
}

impl Server for Redis {
    type Client = Adder;

    fn connect(&self, number: i32) -> Result<(Adder, i64)> {
        let mut redis = Connection::open(&self.socket)?;
        let (set, count) = (set_of(number), count_of(number));
        let last = redis.call(&["GET", &count])?.number().unwrap_or(0);
        Ok((Adder { redis, set, count }, last))
    }
}

impl Client for Adder {
    fn commit(&mut self, seq: i64) -> Result<()> {
        let commands: [&[&str]; 2] = [&["SADD", &self.set, &seq.to_string()], &["INCR", &self.count]];
        self.redis.transaction(&commands).map(drop)
    }
}

impl Checked for Redis {
    /// Each set must be as large as its count.
    fn find(&self, clients: &BTreeSet<i32>) -> Result<Found> {
        let mut redis = Connection::open(&self.socket)?;
        let mut found = Found::default();
        for &client in clients {
            let members = members(&mut redis, client)?;
            let count = redis.call(&["GET", &count_of(client)])?.number().unwrap_or(0);
            if members.len() as i64 != count {
                found.errors.push(format!(
                    "client {client} has {} numbers in the set, but its count is {count}: a torn transaction",
                    members.len()
                ));
            }
            found.commits.extend(members.into_iter().map(|seq| Entry { client, seq }));
        }
        Ok(found)
    }
}

fn members(redis: &mut Connection, client: i32) -> Result<Vec<i64>> {
    match redis.call(&["SMEMBERS", &set_of(client)])? {
        Reply::List(Some(members)) => {
            members.iter().map(|seq| seq.number().context("a member of the set is not a number")).collect()
        }
        other => bail!("SMEMBERS replied {other:?}"),
    }
}
