//! A guard that is a *directory* where the bare database opens a log, `X`, before it reads its files.
//!
//! Bare SQLite takes `DATABASE-journal/` for a hot journal, cannot read it, and answers `disk I/O error` before it reads a
//! page: in every journal mode, for every user. MariaDB cannot make `ddl_recovery.log` and ends.
//!
//! ```text
//!   DOWN                     PREPARED                     UP
//!   X: none, or          ──▶ X as before,             ──▶ X/          (marker, README)
//!   the real log             X.seawall/ prepared          X.seawall   the real log, if any
//! ```
//!
//! The step from PREPARED to UP is one rename: with RENAME_EXCHANGE where there is a real log, with
//! RENAME_NOREPLACE where there is none. The way down is the same rename backwards. So a real log, possibly one that is
//! needed, has one of its two names at every moment, and a directory under the other name is ours.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use seawall_core::stand_in::{self, MARKER};
use seawall_wire::shm::Preset;

use crate::place::beside;

use super::among::Among;
use super::fault::{GuardError, directory_of, fault, refuse_other, remove, sync_directory};
use super::text::Claim;

const README: &str = "README";
/// Tries to meet a database that makes and removes its log at the same time.
const RACES: u32 = 1000;

struct Names<'a> {
    log: &'a Path,
    aside: PathBuf,
}

fn names(log: &Path) -> Names<'_> {
    Names { aside: beside(log, ".seawall"), log }
}

impl Names<'_> {
    fn parent(&self) -> &Path {
        directory_of(self.log)
    }
}

/// The pool that the log `log` is guarded for, if it is.
pub fn claimed(log: &Path) -> Option<Claim> {
    Claim::read(&log.join(MARKER))
}

/// True if the guard at `log` is up.
pub fn is_up(log: &Path) -> bool {
    log.join(MARKER).symlink_metadata().is_ok()
}

/// Raises the guard at the log `log`.
///
/// # Errors
/// [`GuardError`].
pub fn raise(log: &Path, claim: &Claim, among: Among<'_>) -> Result<(), GuardError> {
    let n = names(log);
    if let Some(found) = claimed(log) {
        return refuse_other(n.log, &found, Some(claim));
    }
    if n.log.is_dir() {
        return Err(fault("replace", n.log)(io::Error::other("it is a directory that Seawall did not make")));
    }
    among.alone(log).and_then(|_alone| take_back(&n))?;
    prepare(&n, claim)?;
    among.alone(log).and_then(|_alone| swap(&n.aside, n.log))?;
    sync_directory(n.parent())
}

/// A log that lies where it would under a guard, and there is none: somebody removed that, or it was lowered while a program made the
/// log. It gets its name back. If another one has the name, an empty one goes: its program makes it anew.
fn take_back(n: &Names<'_>) -> Result<(), GuardError> {
    let Ok(found) = n.aside.symlink_metadata() else { return Ok(()) };
    if found.is_dir() {
        return Ok(());
    }
    match renameat_with(CWD, &n.aside, CWD, n.log, RenameFlags::NOREPLACE).map_err(io::Error::from) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists && found.len() == 0 => remove(&n.aside),
        Err(e) if e.kind() != ErrorKind::NotFound => Err(fault("rename", &n.aside)(e)),
        _ => Ok(()),
    }
}

/// Lowers it. A real log that was kept aside gets its name back. A crash may leave each of the steps before it.
///
/// # Errors
/// [`GuardError`].
pub fn lower(log: &Path, claim: Option<&Claim>, among: Among<'_>) -> Result<(), GuardError> {
    let n = names(log);
    let alone = among.alone(log)?;
    if let Some(found) = claimed(log) {
        refuse_other(n.log, &found, claim)?;
        swap(n.log, &n.aside)?;
    }
    if !n.aside.is_dir() {
        return take_back(&n);
    }
    // What is left is nobody's but ours.
    drop(alone);
    clear(&n.aside)
}

/// Every log below `dir` that has a guard, up or half-way.
pub fn find(preset: Preset, dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(preset, dir, &mut found);
    found.sort();
    found.dedup();
    found
}

fn walk(preset: Preset, dir: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let log = PathBuf::from(OsStr::from_bytes(stand_in::true_name(path.as_os_str().as_bytes())));
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // A real log whose guard somebody removed.
            if log != path && stand_in::has_directory(preset, log.as_os_str().as_bytes()) {
                found.push(log);
            }
            continue;
        }
        // A user's own directory of such a name is like any other.
        let is_ours = log != path || is_up(&log);
        if is_ours && stand_in::has_directory(preset, log.as_os_str().as_bytes()) {
            found.push(log);
        } else if !stand_in::is_one_database(preset) {
            walk(preset, &path, found);
        }
    }
}

/// Makes the directory under its other name, complete and on disk.
fn prepare(n: &Names<'_>, claim: &Claim) -> Result<(), GuardError> {
    let aside = &n.aside;
    match fs::create_dir(aside) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(fault("create", aside)(e)),
        _ => {}
    }
    let text = claim.text(match stand_in::has_directory(Preset::Mariadb, n.log.as_os_str().as_bytes()) {
        true => "This directory stands where MariaDB would keep its log of DDL, ddl_recovery.log.",
        false => "This directory stands where the SQLite database beside it would keep its journal.",
    });
    for name in [README, MARKER] {
        let path = aside.join(name);
        fs::write(&path, &text).map_err(fault("write", &path))?;
        open_to_all(&path, 0o644)?;
        sync_directory(&path)?;
    }
    open_to_all(aside, 0o755)?;
    sync_directory(aside)
}

/// Every user of the database must be able to see the guard.
fn open_to_all(path: &Path, mode: u32) -> Result<(), GuardError> {
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(fault("set the mode of", path))
}

/// Gives the directory at `from` the name `to`; a log that has that name takes `from` instead.
fn swap(from: &Path, to: &Path) -> Result<(), GuardError> {
    for _ in 0..RACES {
        let flags =
            if to.symlink_metadata().is_ok() { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        match renameat_with(CWD, from, CWD, to, flags).map_err(io::Error::from) {
            Ok(()) => return Ok(()),
            Err(e) if matches!(e.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {}
            Err(e) => return Err(fault("rename", from)(e)),
        }
    }
    Err(fault("rename", from)(io::Error::other("the log beside it appears and disappears too fast")))
}

fn clear(aside: &Path) -> Result<(), GuardError> {
    // The marker goes last: half a directory is still known to be ours.
    for name in [README, MARKER] {
        remove(&aside.join(name))?;
    }
    match fs::remove_dir(aside) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(fault("remove", aside)(e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raise(log: &Path, claim: &Claim) -> Result<(), GuardError> {
        super::raise(log, claim, Among::Nobody)
    }

    fn lower(log: &Path, claim: Option<&Claim>) -> Result<(), GuardError> {
        super::lower(log, claim, Among::Nobody)
    }

    fn claim(uuid: u128) -> Claim {
        Claim { uuid, pool: format!("/pool{uuid}").into() }
    }

    /// Its name, and what makes it.
    type State = (&'static str, fn(&Names<'_>));

    /// Every state a crash can leave, with and without a real journal.
    fn crash_states() -> Vec<State> {
        vec![
            ("down", |_| {}),
            ("an empty directory aside", |n| fs::create_dir(&n.aside).expect("made")),
            ("prepared", |n| prepare(n, &claim(1)).expect("made")),
            ("up", |n| {
                prepare(n, &claim(1)).expect("made");
                swap(&n.aside, n.log).expect("swapped");
            }),
            ("half cleared", |n| {
                prepare(n, &claim(1)).expect("made");
                fs::remove_file(n.aside.join(README)).expect("removed");
            }),
        ]
    }

    // Holds: P5
    #[test]
    fn every_crash_state_can_be_raised_and_lowered() {
        for (name, make) in crash_states() {
            for journal in [None, Some("a hot journal")] {
                for up in [true, false] {
                    for (preset, log) in
                        [(Preset::Sqlite, "a.db-journal"), (Preset::Mariadb, stand_in::DDL_LOG)]
                    {
                        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
                        let log = dir.path().join(log);
                        let n = names(&log);
                        journal.iter().for_each(|text| fs::write(n.log, text).expect("written"));
                        make(&n);
                        check(name, (preset, &log), journal, up);
                    }
                }
            }
        }
    }

    fn check(name: &str, (preset, log): (Preset, &Path), journal: Option<&str>, up: bool) {
        let n = names(log);
        let real = if up {
            raise(log, &claim(1)).expect(name);
            assert_eq!(claimed(log), Some(claim(1)), "{name}");
            assert_eq!(find(preset, n.parent()), [log], "{name}");
            n.aside.as_path()
        } else {
            lower(log, Some(&claim(1))).expect(name);
            assert!(!n.aside.exists() && !n.log.is_dir(), "{name}");
            n.log
        };
        assert_eq!(fs::read_to_string(real).ok().as_deref(), journal, "{name}, up: {up}");
    }

    // Holds: P5
    #[test]
    fn a_log_whose_guard_was_removed_gets_its_name_back() {
        let scene = || {
            let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
            let log = dir.path().join("a.db-journal");
            fs::write(&log, "a hot journal").expect("written");
            raise(&log, &claim(1)).expect("raised");
            fs::remove_dir_all(&log).expect("removed, by a hand that does not see the journal");
            (dir, log)
        };
        let (dir, log) = scene();
        assert_eq!(find(Preset::Sqlite, dir.path()), std::slice::from_ref(&log));
        lower(&log, Some(&claim(1))).expect("lowered");
        assert_eq!(fs::read_to_string(&log).expect("read"), "a hot journal");
        let (_dir, log) = scene();
        raise(&log, &claim(1)).expect("raised again");
        assert_eq!(fs::read_to_string(names(&log).aside).expect("read"), "a hot journal");
    }

    #[test]
    fn an_empty_log_that_was_made_beside_a_lowered_guard_goes_and_another_one_stays() {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let log = dir.path().join("a.db-journal");
        fs::write(&log, "the journal").expect("written");
        fs::write(names(&log).aside, "").expect("made");
        raise(&log, &claim(1)).expect("raised");
        lower(&log, Some(&claim(1))).expect("lowered");
        assert_eq!(fs::read_to_string(&log).expect("read"), "the journal");
        fs::write(names(&log).aside, "another").expect("made");
        raise(&log, &claim(1)).expect_err("which one?");
        assert_eq!(fs::read_to_string(names(&log).aside).expect("read"), "another");
    }

    // Holds: R6
    #[test]
    fn another_pools_guard_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let log = dir.path().join("a.db-journal");
        raise(&log, &claim(1)).expect("raised");
        assert!(matches!(raise(&log, &claim(2)), Err(GuardError::OtherPool { .. })));
        assert!(matches!(lower(&log, Some(&claim(2))), Err(GuardError::OtherPool { .. })));
        lower(&log, None).expect("abandoned on purpose");
        assert_eq!(claimed(&log), None);
    }

    #[test]
    fn a_users_own_directory_of_that_name_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let log = dir.path().join("a.db-journal");
        fs::create_dir(dir.path().join("a.db-journal")).expect("made");
        fs::write(dir.path().join("a.db-journal/mine"), "").expect("written");
        lower(&log, Some(&claim(1))).expect("nothing to do");
        assert!(raise(&log, &claim(1)).is_err(), "not ours to replace");
        assert!(dir.path().join("a.db-journal/mine").exists());
    }
}
