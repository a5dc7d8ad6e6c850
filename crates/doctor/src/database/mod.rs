//! The database in a directory, or the SQLite file: which one it is, and those of its settings that decide on durability.
//!
//! Input: files only: configuration, and what the server notes beside its data. No server is asked, so what was set by a
//! session, or for a role, is not seen; that is said.

mod mariadb;
mod postgres;
mod process;
mod redis;
mod settings;
mod sqlite;

use std::path::{Path, PathBuf};

use serde::Serialize;

pub use process::Process;
pub use settings::{COMMAND_LINE, Setting, Settings};

use crate::finding::Unseen;
use crate::root::Root;

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// PostgreSQL.
    Postgres,
    /// MariaDB or MySQL.
    Mariadb,
    /// Redis or Valkey.
    Redis,
    /// SQLite.
    Sqlite,
}

impl Engine {
    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Mariadb => "MariaDB",
            Self::Redis => "Redis",
            Self::Sqlite => "SQLite",
        }
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Database {
    /// Which one.
    pub engine: Engine,
    /// Its directory, or file.
    pub data: PathBuf,
    /// Where its redo log is.
    pub log: PathBuf,
    /// Its settings.
    pub settings: Settings,
    /// Bytes of a page.
    pub page: u64,
    /// Pages have checksums; `None` if that is not known.
    pub checksums: Option<bool>,
    /// The process that runs now, as the database noted it.
    pub process: Option<Process>,
    /// What cannot be seen.
    pub unseen: Vec<Unseen>,
}

impl Database {
    fn new(engine: Engine, data: &Path) -> Self {
        Self {
            engine,
            data: data.to_owned(),
            log: data.to_owned(),
            settings: Settings::default(),
            page: 0,
            checksums: None,
            process: None,
            unseen: Vec::new(),
        }
    }
}

/// The database at a path, if there is one.
pub fn find(root: &Root, at: &Path) -> Option<Database> {
    let has = |name: &str| root.has(at.join(name));
    if has("PG_VERSION") && has("global") {
        return Some(postgres::read(root, at));
    }
    if ["ibdata1", "aria_log_control", "mysql.ibd"].iter().any(|name| has(name)) {
        return Some(mariadb::read(root, at));
    }
    if ["appendonlydir", "appendonly.aof", "dump.rdb"].iter().any(|name| has(name)) {
        return Some(redis::read(root, at));
    }
    sqlite::read(root, at)
}
