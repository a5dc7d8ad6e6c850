//! The database in a directory, or the SQLite file: which one it is, and those of its settings that decide on durability.
//!
//! Input: files only: configuration, and what the server notes beside its data. No server is asked, so a setting
//! of a session, or for a role, is not seen; a note says so.

mod found;
mod mariadb;
mod postgres;
mod process;
mod redis;
mod settings;
mod sqlite;

use std::path::Path;

pub use found::{Database, Engine};
pub use settings::{COMMAND_LINE, Setting};

use crate::root::Root;

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
