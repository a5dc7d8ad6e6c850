//! PostgreSQL 12 and later, with the rights of `pg_monitor`.
//!
//! Views are read as JSON, column by column as the server's version has them, so that a new version needs no
//! new code here. A view that the server lacks, or does not show to us, becomes a note.

mod bytes;
mod rows;
mod sample;
mod views;

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use postgres::{Client, Config, NoTls, SimpleQueryMessage};

use crate::block_cache::CACHE;
use crate::database::connection::Database;
use crate::machine::{self, process};
use crate::model::{Reading, Sample, Snapshot, Target};

const NAME: &str = "seawall awr";
/// In the text of every statement of ours, to separate what capturing costs the server from the rest.
pub const MARK: &str = "/* seawall awr */";
const PATIENCE: Duration = Duration::from_secs(5);

type Rows = Vec<Vec<Option<String>>>;

/// A session of ours.
pub struct Postgres {
    client: Client,
    /// Our own server process.
    pid: u32,
    /// The server runs on this machine, and its processes can be seen.
    local: bool,
    version: u32,
}

impl Postgres {
    /// Connects as the user that the address, `PGUSER` or the system names.
    pub fn connect(address: &str) -> Result<Self> {
        let mut config: Config = address.parse().with_context(|| format!("--db {address}"))?;
        let from_environment = |names: &[&str]| names.iter().find_map(|name| std::env::var(name).ok());
        if config.get_user().is_none() {
            config.user(from_environment(&["PGUSER", "USER"]).as_deref().unwrap_or("postgres"));
        }
        if config.get_dbname().is_none() {
            config.dbname(from_environment(&["PGDATABASE"]).as_deref().unwrap_or("postgres"));
        }
        if let (None, Some(word)) = (config.get_password(), from_environment(&["PGPASSWORD"])) {
            config.password(word);
        }
        let user = config.get_user().unwrap_or_default().to_owned();
        let client = config.application_name(NAME).connect_timeout(PATIENCE).connect(NoTls);
        let client = client.map_err(|e| plain(&e)).with_context(|| {
            format!(
                "cannot connect to PostgreSQL as {user:?} (another user: user=… in --db; a role with \
                 pg_monitor is enough)"
            )
        })?;
        let mut this = Self { client, pid: 0, local: false, version: 0 };
        this.query(&format!("SET statement_timeout = '{}s'", PATIENCE.as_secs()))?;
        this.version = this.word("SHOW server_version_num")?.parse().unwrap_or(0);
        this.pid = this.word("SELECT pg_backend_pid()")?.parse().unwrap_or(0);
        this.local = process::is_server(this.pid);
        Ok(this)
    }

    /// Rows of words.
    fn query(&mut self, sql: &str) -> Result<Rows> {
        self.ask(sql).map_err(|e| plain(&e))
    }

    /// The same, with the server's code of an error. A word that is not of UTF-8 is none: [`bytes`] reads those.
    fn ask(&mut self, sql: &str) -> Result<Rows, postgres::Error> {
        let answer = self.client.simple_query(&format!("{MARK} {sql}"))?;
        let rows = answer.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                let word = |i| row.try_get(i).ok().flatten().map(str::to_owned);
                Some((0..row.len()).map(word).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }

    fn word(&mut self, sql: &str) -> Result<String> {
        let rows = self.query(sql)?;
        let word = rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
        word.with_context(|| format!("PostgreSQL gave no answer to {sql:?}"))
    }

    /// Whether the connection is still there; an error of one query need not end it.
    fn is_gone(&self) -> bool {
        self.client.is_closed()
    }
}

impl Database for Postgres {
    fn target(&mut self) -> Result<Target> {
        let id = self.word("SELECT system_identifier FROM pg_control_system()");
        let place = self.word("SELECT current_setting('cluster_name') || ':' || current_setting('port')")?;
        Ok(Target {
            product: "PostgreSQL".into(),
            version: self.word("SHOW server_version")?,
            id: format!("postgresql {}", id.unwrap_or_else(|_| place.clone())),
            name: place,
            host: machine::host_name(),
        })
    }

    fn capture(&mut self, snapshot: &mut Snapshot) -> Result<()> {
        let start = self.word("SELECT extract(epoch FROM pg_postmaster_start_time())")?;
        let version = self.version;
        let relations = snapshot.one(CACHE).map(|_| &views::RELATIONS);
        for view in views::VIEWS.iter().chain(relations).filter(|view| view.is_of(version)) {
            if let Some(needed) = view.needs
                && self.word(&format!("SELECT coalesce(to_regclass('{needed}')::text, '')"))?.is_empty()
            {
                let note = format!("{} is not installed in this database. {}", view.kind, view.without);
                snapshot.notes.extend((!view.without.is_empty()).then_some(note));
                continue;
            }
            match bytes::rows(self, view) {
                Ok(rows) => {
                    let complete = view.limit.is_none_or(|limit| rows.len() < limit);
                    let readings = rows.iter().filter_map(|row| rows::reading(view, &start, row));
                    snapshot.add(view.kind, complete, readings.collect());
                }
                Err(e) if self.is_gone() => return Err(e),
                Err(e) => snapshot.notes.push(format!("{}: {e:#}. {}", view.kind, view.without)),
            }
        }
        if self.local {
            snapshot.add("server", true, process::reading(self.pid, &start).into_iter().collect());
        } else {
            snapshot
                .notes
                .push("the server's CPU time cannot be seen: it runs elsewhere, or in a container".into());
        }
        snapshot.add("storage", true, self.storage());
        Ok(())
    }

    fn sample(&mut self) -> Result<Vec<Sample>> {
        let sql = if self.version >= 140_000 { sample::SQL } else { sample::SQL_WITHOUT_STATEMENTS };
        let at_ms = crate::clock::wall_ms();
        Ok(self.query(sql)?.iter().filter_map(|row| sample::sample(at_ms, row)).collect())
    }
}

impl Postgres {
    /// What data and log lie on, where we may look.
    fn storage(&mut self) -> Vec<Reading> {
        let Ok(data) = self.word("SHOW data_directory") else { return Vec::new() };
        if !self.local {
            return Vec::new();
        }
        let log = format!("{data}/pg_wal");
        [("data", data), ("log", log)]
            .into_iter()
            .filter_map(|(what, path)| machine::storage(what, &path))
            .collect()
    }
}

/// The server's own words instead of the library's.
fn plain(error: &postgres::Error) -> anyhow::Error {
    match error.as_db_error() {
        Some(said) => anyhow!("{}", said.message()),
        None => match std::error::Error::source(error) {
            Some(source) => anyhow!("{error}: {source}"),
            None => anyhow!("{error}"),
        },
    }
}
