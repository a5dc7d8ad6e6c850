//! The tables, and their version.

use std::path::Path;

use rusqlite::Connection;

use super::error::{Raw, RepositoryError};

/// "SWAW": tells our files from other programs' databases.
const APPLICATION: i64 = 0x5357_4157;
/// Raised whenever a reader of the former version would misunderstand.
pub const VERSION: i64 = 1;

const TABLES: &str = "
CREATE TABLE words (id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, body TEXT NOT NULL);
CREATE INDEX words_hash ON words (hash);
CREATE TABLE snapshot (
    id INTEGER PRIMARY KEY AUTOINCREMENT, wall_ms INTEGER NOT NULL, target TEXT NOT NULL, label TEXT NOT NULL,
    head TEXT NOT NULL, readings TEXT NOT NULL, words INTEGER NOT NULL REFERENCES words (id));
CREATE INDEX snapshot_target ON snapshot (target, id);
CREATE TABLE tick (target TEXT NOT NULL, at_ms INTEGER NOT NULL, PRIMARY KEY (target, at_ms)) WITHOUT ROWID;
CREATE TABLE sample (
    target TEXT NOT NULL, at_ms INTEGER NOT NULL, foreground INTEGER NOT NULL, wait_type TEXT NOT NULL,
    wait_event TEXT NOT NULL, query_id INTEGER NOT NULL, sessions INTEGER NOT NULL);
CREATE INDEX sample_at ON sample (target, at_ms);
CREATE TABLE baseline (name TEXT PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL) WITHOUT ROWID;
";

/// Makes the tables in a new file.
pub fn create(connection: &Connection) -> Result<(), Raw> {
    // Readers need not wait for the sampler, nor it for them.
    connection.pragma_update(None, "journal_mode", "wal")?;
    let version = format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};");
    connection.execute_batch(&format!("BEGIN; {TABLES} {version} COMMIT;"))?;
    Ok(())
}

/// Accepts only files of ours, of this version.
pub fn check(connection: &Connection, path: &Path) -> Result<(), Raw> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if pragma("application_id")? != APPLICATION {
        return Err(RepositoryError::Foreign(path.into()).into());
    }
    let found = pragma("user_version")?;
    if found != VERSION {
        return Err(RepositoryError::Version { path: path.into(), found, wanted: VERSION }.into());
    }
    // A file that was cut short or overwritten is found now, not in the middle of a report.
    let first: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if first == "ok" { Ok(()) } else { Err(RepositoryError::Damaged(path.into(), first).into()) }
}
