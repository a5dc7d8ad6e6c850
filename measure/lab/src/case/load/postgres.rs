//! Loads of PostgreSQL: pgbench, and our own generators.

use std::collections::BTreeMap;

use seawall_load::slob::{CommitMode, Conf};
use serde::Deserialize;
use toml::Spanned;

use crate::case::Setting;
use crate::case::wrong::{Checked, Wrong, within};
use crate::pg::Test;

/// Clients of pgbench, one commit a transaction.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pgbench {
    /// Which of its built-in scripts.
    pub test: Test,
    pub clients: usize,
    /// 100,000 accounts (16 MB) each.
    pub scale: u32,
}

/// The SLOB method: rows of one block each, updated a work unit at a time through an index.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slob {
    /// Parameters by SLOB's own names, as in a `slob.conf`.
    pub conf: Spanned<BTreeMap<String, Setting>>,
    /// When sessions wait for durability.
    pub commit: CommitMode,
    pub schemas: u32,
    /// Sessions in each schema.
    pub threads: u32,
}

/// The TPROC-C-like mix: its consistency conditions are checked after every run, and after a kill at the end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tprocc {
    pub warehouses: u32,
    /// 100000 as specified.
    pub items: u32,
    /// Of a district; 3000 as specified.
    pub customers: u32,
    /// Virtual users, without keying and thinking time.
    pub users: u32,
}

impl Tprocc {
    pub(super) fn check(&self) -> Checked {
        let Tprocc { warehouses, items, customers, users } = *self;
        let numbers = [
            ("warehouses", warehouses, 1..=1000),
            ("items", items, 100..=100_000),
            ("customers", customers, 10..=3000),
            ("users", users, 1..=40),
        ];
        within("tprocc", &numbers)
    }

    pub(super) fn in_words(&self) -> String {
        let Tprocc { warehouses, items, customers, users } = self;
        format!(
            "TPROC-C-like mix (no result of TPC-C), {users} users without keying time, warehouses: {warehouses}, items: {items}, \
             customers of a district: {customers}; commit mode: per transaction, each waits until it is durable"
        )
    }

    /// What the tables take, bytes: some 100 MB a warehouse as specified.
    pub(super) fn bytes(&self) -> u64 {
        let stock = u64::from(self.items) * 400;
        u64::from(self.warehouses) * (stock + u64::from(self.customers) * 10 * 2000) + stock
    }
}

impl Pgbench {
    pub(super) fn check(&self) -> Checked {
        let clients = u32::try_from(self.clients).unwrap_or(u32::MAX);
        within("pgbench", &[("clients", clients, 1..=40), ("scale", self.scale, 1..=100_000)])
    }

    pub(super) fn in_words(&self) -> String {
        let (test, clients, scale) = (self.test.title(), self.clients, self.scale);
        let commits = match self.test.updates() {
            true => "commit mode: per operation, each waits until it is durable",
            false => "commits nothing",
        };
        format!("pgbench {test}, {clients} clients, scale {scale}; {commits}")
    }
}

impl Slob {
    pub(super) fn check(&self) -> Checked {
        let at = || self.conf.span();
        if let Err(mistake) = self.bytes() {
            return Err(Wrong { at: at(), what: format!("conf: {mistake}") });
        }
        if self.schemas == 0 || !(1..=40).contains(&(self.schemas * self.threads)) {
            return Err(Wrong {
                at: at(),
                what: "[slob]: schemas × threads must be from 1 to 40 sessions".into(),
            });
        }
        Ok(())
    }

    /// Its parameters as words.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, String)> {
        self.conf.get_ref().iter().map(|(name, value)| (name.as_str(), value.to_string()))
    }

    /// What the tables take, bytes.
    ///
    /// # Errors
    /// A parameter that is none, or whose value cannot be.
    pub(super) fn bytes(&self) -> Result<u64, String> {
        let mut conf = Conf::default();
        for (name, value) in self.parameters() {
            conf.set(name, &value).map_err(|mistake| mistake.to_string())?;
        }
        const BLOCK: u64 = 8192;
        Ok((conf.scale.blocks(BLOCK) + conf.scan_table_sz.blocks(BLOCK)) * BLOCK * u64::from(self.schemas))
    }

    pub(super) fn in_words(&self) -> String {
        let conf: Vec<String> = self.parameters().map(|(name, value)| format!("{name}={value}")).collect();
        let mode = match self.commit {
            CommitMode::PerOperation => "per operation, each waits until it is durable",
            CommitMode::Asynchronous => "per operation, but one wait when the session ends (as PL/SQL)",
            CommitMode::OneTransaction => "one transaction a session",
        };
        format!(
            "SLOB method, schemas: {}, threads of each: {}, {}; commit mode: {mode}",
            self.schemas,
            self.threads,
            conf.join(" ")
        )
    }
}
