//! What is known of a database, for every engine.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::process::Process;
use super::settings::Settings;
use crate::finding::Unseen;

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
    /// Nothing is known yet but where it is.
    pub fn new(engine: Engine, data: &Path) -> Self {
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
