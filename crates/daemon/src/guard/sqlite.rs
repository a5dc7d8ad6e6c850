//! The guard of an SQLite database `X`: a *directory* `X-journal/`.
//!
//! Bare SQLite takes it for a hot journal, cannot read it, and answers `disk I/O error` before it reads a
//! page: in every journal mode, for every user.
//!
//! ```text
//!   DOWN                     PREPARED                          UP
//!   X-journal: none, or  ──▶ X-journal as before,         ──▶  X-journal/          (marker, README)
//!   a real journal           X-journal.seawall/ prepared       X-journal.seawall   the real journal, if any
//! ```
//!
//! The step from PREPARED to UP is one rename: with RENAME_EXCHANGE where there is a real journal, with
//! RENAME_NOREPLACE where there is none. The way down is the same rename backwards. So a real, possibly hot,
//! journal has one of its two names at every moment, and a directory under the other name is ours.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::place::beside;

use super::{Claim, GuardError, fault, remove, sync_directory};

/// Name of the marker in the directory; the preload looks for it.
const MARKER: &str = ".seawall";
const README: &str = "README";
/// Tries to meet an SQLite that creates and deletes its journal at the same time.
const RACES: u32 = 1000;

struct Names {
    journal: PathBuf,
    aside: PathBuf,
}

fn names(database: &Path) -> Names {
    let journal = beside(database, "-journal");
    Names { aside: beside(&journal, ".seawall"), journal }
}

impl Names {
    fn parent(&self) -> &Path {
        self.journal.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}

/// The pool a database is guarded for, if it is.
pub fn claimed(database: &Path) -> Option<Claim> {
    Claim::read(&names(database).journal.join(MARKER))
}

/// Raises the guard of the database file `database`.
///
/// # Errors
/// [`GuardError`].
pub fn raise(database: &Path, claim: &Claim) -> Result<(), GuardError> {
    let n = names(database);
    if let Some(found) = Claim::read(&n.journal.join(MARKER)) {
        return refuse_other(&n, &found, Some(claim));
    }
    if n.journal.is_dir() {
        return Err(fault("replacing", &n.journal)(io::Error::other("it is a directory that is not ours")));
    }
    prepare(&n.aside, claim)?;
    swap(&n.aside, &n.journal)?;
    sync_directory(n.parent())
}

/// Lowers it. A real journal that was kept aside gets its name back.
///
/// # Errors
/// [`GuardError`].
pub fn lower(database: &Path, claim: Option<&Claim>) -> Result<(), GuardError> {
    let n = names(database);
    if let Some(found) = Claim::read(&n.journal.join(MARKER)) {
        refuse_other(&n, &found, claim)?;
        swap(&n.journal, &n.aside)?;
        sync_directory(n.parent())?;
    }
    if n.aside.is_dir() {
        clear(&n.aside)?;
        sync_directory(n.parent())?;
    }
    Ok(())
}

/// Every database below `dir` that has a guard, up or half-way.
pub fn find(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(dir, &mut found);
    found.sort();
    found.dedup();
    found
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten().filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())) {
        let (path, name) = (entry.path(), entry.file_name().into_encoded_bytes());
        let ends = [&b"-journal"[..], b"-journal.seawall"];
        match ends.iter().find_map(|end| name.strip_suffix(*end)) {
            Some(database) if !database.is_empty() => {
                found.push(dir.join(OsStr::from_bytes(database)));
            }
            _ => walk(&path, found),
        }
    }
}

fn refuse_other(n: &Names, found: &Claim, claim: Option<&Claim>) -> Result<(), GuardError> {
    match claim {
        Some(claim) if claim.uuid != found.uuid => {
            Err(GuardError::OtherPool { at: n.journal.clone(), pool: found.pool.display().to_string() })
        }
        _ => Ok(()),
    }
}

/// Makes the directory under its other name, complete and on disk.
fn prepare(aside: &Path, claim: &Claim) -> Result<(), GuardError> {
    match fs::create_dir(aside) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(fault("creating", aside)(e)),
        _ => {}
    }
    let text =
        claim.text("This directory stands where the SQLite database beside it would keep its journal.");
    for name in [README, MARKER] {
        let path = aside.join(name);
        fs::write(&path, &text).map_err(fault("writing", &path))?;
        open_to_all(&path, 0o644)?;
        sync_directory(&path)?;
    }
    open_to_all(aside, 0o755)?;
    sync_directory(aside)
}

/// Every user of the database must be able to see the guard.
fn open_to_all(path: &Path, mode: u32) -> Result<(), GuardError> {
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(fault("setting the mode of", path))
}

/// Gives the directory at `from` the name `to`; a journal that has that name takes `from` instead.
fn swap(from: &Path, to: &Path) -> Result<(), GuardError> {
    for _ in 0..RACES {
        let flags =
            if to.symlink_metadata().is_ok() { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        match renameat_with(CWD, from, CWD, to, flags).map_err(io::Error::from) {
            Ok(()) => return Ok(()),
            Err(e) if matches!(e.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {}
            Err(e) => return Err(fault("renaming", from)(e)),
        }
    }
    Err(fault("renaming", from)(io::Error::other("the journal beside it comes and goes too fast")))
}

fn clear(aside: &Path) -> Result<(), GuardError> {
    // The marker goes last: half a directory is still known to be ours.
    for name in [README, MARKER] {
        remove(&aside.join(name))?;
    }
    match fs::remove_dir(aside) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(fault("removing", aside)(e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(uuid: u128) -> Claim {
        Claim { uuid, pool: format!("/pool{uuid}").into() }
    }

    /// Its name, and what makes it.
    type State = (&'static str, fn(&Names));

    /// Every state a crash can leave, with and without a real journal.
    fn crash_states() -> Vec<State> {
        vec![
            ("down", |_| {}),
            ("an empty directory aside", |n| fs::create_dir(&n.aside).expect("made")),
            ("prepared", |n| prepare(&n.aside, &claim(1)).expect("made")),
            ("up", |n| {
                prepare(&n.aside, &claim(1)).expect("made");
                swap(&n.aside, &n.journal).expect("swapped");
            }),
            ("half cleared", |n| {
                prepare(&n.aside, &claim(1)).expect("made");
                fs::remove_file(n.aside.join(README)).expect("removed");
            }),
        ]
    }

    #[test]
    fn every_crash_state_can_be_raised_and_lowered() {
        for (name, make) in crash_states() {
            for journal in [None, Some("a hot journal")] {
                for up in [true, false] {
                    let dir = tempfile::tempdir().expect("a directory");
                    let database = dir.path().join("a.db");
                    let n = names(&database);
                    journal.iter().for_each(|text| fs::write(&n.journal, text).expect("written"));
                    make(&n);
                    check(name, &database, journal, up);
                }
            }
        }
    }

    fn check(name: &str, database: &Path, journal: Option<&str>, up: bool) {
        let n = names(database);
        let real = if up {
            raise(database, &claim(1)).expect(name);
            assert_eq!(claimed(database), Some(claim(1)), "{name}");
            assert_eq!(find(n.parent()), [database], "{name}");
            &n.aside
        } else {
            lower(database, Some(&claim(1))).expect(name);
            assert!(!n.aside.exists() && !n.journal.is_dir(), "{name}");
            &n.journal
        };
        assert_eq!(fs::read_to_string(real).ok().as_deref(), journal, "{name}, up: {up}");
    }

    #[test]
    fn another_pools_guard_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let database = dir.path().join("a.db");
        raise(&database, &claim(1)).expect("raised");
        assert!(matches!(raise(&database, &claim(2)), Err(GuardError::OtherPool { .. })));
        assert!(matches!(lower(&database, Some(&claim(2))), Err(GuardError::OtherPool { .. })));
        lower(&database, None).expect("abandoned on purpose");
        assert_eq!(claimed(&database), None);
    }

    #[test]
    fn a_users_own_directory_of_that_name_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let database = dir.path().join("a.db");
        fs::create_dir(dir.path().join("a.db-journal")).expect("made");
        fs::write(dir.path().join("a.db-journal/mine"), "").expect("written");
        lower(&database, Some(&claim(1))).expect("nothing to do");
        assert!(raise(&database, &claim(1)).is_err(), "not ours to replace");
        assert!(dir.path().join("a.db-journal/mine").exists());
    }
}
