//! Which database a load goes to.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::sqlite::{JournalMode, Synchronous};

/// A database to put under load.
#[derive(Clone, Debug)]
pub enum Target {
    /// How to connect, in libpq's words: `host=/run/postgresql user=postgres dbname=postgres`.
    Postgres(String),
    /// A server of MariaDB's.
    Mariadb(MariadbServer),
    /// A file.
    Sqlite(SqliteFile),
}

/// How MariaDB is reached.
#[derive(Clone, Debug)]
pub struct MariadbServer {
    /// Its socket.
    pub socket: PathBuf,
    /// The user that connects.
    pub user: String,
    /// With which password; empty for none.
    pub password: String,
}

/// How SQLite's file is opened.
#[derive(Clone, Debug)]
pub struct SqliteFile {
    /// The file.
    pub path: PathBuf,
    /// `PRAGMA journal_mode`.
    pub journal: JournalMode,
    /// `PRAGMA synchronous`.
    pub synchronous: Synchronous,
}

impl Target {
    /// Its name in results.
    pub fn name(&self) -> &'static str {
        match self {
            Target::Postgres(_) => "postgres",
            Target::Mariadb(_) => "mariadb",
            Target::Sqlite(_) => "sqlite",
        }
    }
}

/// The kinds of databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "their names")]
pub enum Kind {
    Postgres,
    Mariadb,
    Sqlite,
}

const HEADING: &str = "Database";

/// The options that name a database.
#[derive(Clone, Debug, Args)]
pub struct TargetOptions {
    /// Which database
    #[arg(long, value_enum, help_heading = HEADING)]
    pub database: Kind,
    /// PostgreSQL: how to connect, e.g. `host=/run/postgresql user=postgres dbname=postgres`
    #[arg(long, help_heading = HEADING)]
    pub connect: Option<String>,
    /// MariaDB: where the server listens, e.g. /run/mysqld/mysqld.sock
    #[arg(long, help_heading = HEADING)]
    pub socket: Option<PathBuf>,
    /// MariaDB: the user that connects
    #[arg(long, default_value = "root", help_heading = HEADING)]
    pub user: String,
    /// MariaDB: the password
    #[arg(long, default_value = "", env = "MYSQL_PWD", hide_env_values = true, help_heading = HEADING)]
    pub password: String,
    /// SQLite: the database file (created when missing)
    #[arg(long, help_heading = HEADING)]
    pub db: Option<PathBuf>,
    /// SQLite: journal mode
    #[arg(long, value_enum, default_value_t = JournalMode::Wal, help_heading = HEADING)]
    pub journal: JournalMode,
    /// SQLite: `PRAGMA synchronous`
    #[arg(long, value_enum, default_value_t = Synchronous::Full, help_heading = HEADING)]
    pub synchronous: Synchronous,
}

impl TargetOptions {
    /// The database they name.
    pub fn target(&self) -> Result<Target> {
        Ok(match self.database {
            Kind::Postgres => Target::Postgres(self.connect.clone().context(
                "say how to connect: --connect 'host=/run/postgresql user=postgres dbname=postgres'",
            )?),
            Kind::Mariadb => Target::Mariadb(MariadbServer {
                socket: self
                    .socket
                    .clone()
                    .context("say where the server listens: --socket /run/mysqld/mysqld.sock")?,
                user: self.user.clone(),
                password: self.password.clone(),
            }),
            Kind::Sqlite => {
                let Some(path) = self.db.clone() else { bail!("name the file: --db FILE") };
                Target::Sqlite(SqliteFile { path, journal: self.journal, synchronous: self.synchronous })
            }
        })
    }
}
