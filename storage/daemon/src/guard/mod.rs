//! Guards (promise P5): while the log may hold records the files lack, the *bare* database must not start.
//!
//! Input: a preset and the path the guard belongs to. Output: the guard is up, or down, durably.
//! Every step is atomic and fsynced, and every state a crash can leave is recognised and finished by either
//! [`raise`] or [`lower`]; both may be repeated at will.
//!
//! | preset | what | what the bare database says | |
//! |---|---|---|---|
//! | postgres | a text for `backup_label` | invalid data in file "backup_label" | [`stand_in`] |
//! | mariadb | a directory where `ddl_recovery.log` would be | Failed to create ddl log file | [`directory`] |
//! | mariadb before 10.6, mysql | a text for `ib_logfile0` | Unsupported redo log format … created with unreplayed-WAL:run-seawall-recov | [`stand_in`] |
//! | redis | a text for the append-only file's manifest | quotes its first line | [`stand_in`] |
//! | redis before 7 | a text for the append-only file | Bad file format reading the append only file | [`stand_in`] |
//! | rocksdb | a text for `CURRENT` | CURRENT file corrupted | [`stand_in`] |
//! | lmdb | a text for the data file | not an LMDB file | [`stand_in`] |
//! | etcd | a text for its store, `member/snap/db` | invalid database | [`stand_in`] |
//! | sqlite | a directory where a rollback journal would be | disk I/O error | [`directory`] |
//! | disk | a text for the image | a disk of a few sectors: the machine finds nothing to start from | [`stand_in`] |
//! | any | a text beside the files, `SEAWALL-UNREPLAYED` | nothing: it does not read it | [`stand_in`] |
//!
//! The last one keeps nobody from starting. It tells people, the next daemon, and whoever has a copy of the directory.
//! What keeps a program from stale files is that the log is recovered when the machine starts (`crate::boot`).
//!
//! The first two are at places that backups leave out by their rules, and that the server reads only when it starts.
//!
//! A guard names the pool it was raised for. A guard of another pool is never touched: its records are in
//! that pool.
//!
//! Not handled here: when to raise and lower (`crate::parts::guards`), and how the preload looks behind a guard.

mod among;
pub mod directory;
mod fault;
mod innodb;
pub mod stand_in;
mod text;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use seawall_core::policy::sqlite_database;
use seawall_core::stand_in::{
    BACKUP_LABEL, DDL_LOG, NOTE, REDO_LOG, base, is_redis_file, redis_log, true_name,
};
use seawall_wire::shm::Preset;

pub use among::Among;
pub use fault::GuardError;
use fault::directory_of;
pub(crate) use fault::{fault, sync_directory};
pub use text::{Claim, FIRST_WORD};

use crate::place::beside;

/// Raises the guard at `at`, a place as [`place`] gives it.
///
/// # Errors
/// [`GuardError`]; then no file that it protects may be managed.
pub fn raise(preset: Preset, at: &Path, claim: &Claim, among: Among<'_>) -> Result<(), GuardError> {
    match is_directory(at) {
        true => directory::raise(at, claim, among),
        false => stand_in::raise(preset, at, claim, among),
    }
}

/// Raises it again, which stood aside while its database ran.
///
/// # Errors
/// As for [`raise`].
pub(crate) fn come_back(
    preset: Preset,
    at: &Path,
    claim: &Claim,
    among: Among<'_>,
) -> Result<(), GuardError> {
    match is_directory(at) {
        true => directory::raise(at, claim, among),
        false => stand_in::come_back(preset, at, claim, among),
    }
}

/// Lowers the guard at `at`, whatever state it is in, durably. `claim` `None`: whoever raised it. No client uses its files.
///
/// # Errors
/// [`GuardError`].
pub fn lower(preset: Preset, at: &Path, claim: Option<&Claim>) -> Result<(), GuardError> {
    take_down(preset, at, claim, Among::Nobody)?;
    sync_directory(directory_of(at))
}

/// The same, and a crash may bring it back until its directory is synced.
///
/// # Errors
/// [`GuardError`].
pub(crate) fn take_down(
    preset: Preset,
    at: &Path,
    claim: Option<&Claim>,
    among: Among<'_>,
) -> Result<(), GuardError> {
    match is_directory(at) {
        true => directory::lower(at, claim, among),
        false => stand_in::lower(preset, at, claim, among),
    }
}

/// Removes a text that stands for nothing.
///
/// # Errors
/// [`GuardError`].
pub(crate) fn discard(text: &Path, among: Among<'_>) -> Result<(), GuardError> {
    let _alone = among.alone(text)?;
    std::fs::remove_file(text).map_err(fault("remove", text))
}

/// Every place below the data directory that has a guard, up or half-way.
pub fn find(preset: Preset, data: &Path) -> Vec<PathBuf> {
    let mut found = directory::find(preset, data);
    found.extend(stand_in::find(preset, data));
    found
}

/// The pool that the guard at `at` was raised for, if one is up.
pub fn claimed(at: &Path) -> Option<Claim> {
    if is_directory(at) { directory::claimed(at) } else { stand_in::claimed(at) }
}

/// True unless something took the place of a guard that was raised: also if somebody wrote into it.
pub fn is_up(at: &Path) -> bool {
    if is_directory(at) { directory::is_up(at) } else { stand_in::is_up(at) }
}

fn is_directory(at: &Path) -> bool {
    seawall_core::stand_in::is_directory(at.as_os_str().as_bytes())
}

/// Where the guard of the managed file at `path` belongs, in a database whose directory is `data`.
pub fn place(preset: Preset, data: &Path, path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_bytes();
    let named = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    match preset {
        Preset::Postgres => data.join(BACKUP_LABEL),
        Preset::Mariadb => {
            let log = data.join(DDL_LOG);
            let is_there = |at: &Path| at.symlink_metadata().is_ok();
            if is_there(&log) || is_there(&beside(&log, ".seawall")) { log } else { data.join(REDO_LOG) }
        }
        Preset::Sqlite => beside(&named(sqlite_database(bytes)), "-journal"),
        Preset::Lmdb | Preset::Disk => named(true_name(bytes)),
        Preset::Redis => match redis_log(bytes) {
            Some(log) => beside(&named(log), ".manifest"),
            None if is_redis_file(base(true_name(bytes))) => named(true_name(bytes)),
            None => data.join("appendonly.aof.manifest"),
        },
        Preset::Etcd => path.ancestors().nth(2).unwrap_or(data).join("snap/db"),
        // A log in a directory of its own has none beside it: it cannot be guarded, so it is not managed.
        Preset::Rocksdb => path.with_file_name("CURRENT"),
        Preset::Any => path.with_file_name(NOTE),
    }
}
