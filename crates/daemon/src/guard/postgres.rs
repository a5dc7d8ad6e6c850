//! The guard of a PGDATA: its `PG_VERSION`.
//!
//! ```text
//!              link        write, fsync         rename, fsync directory
//!   DOWN ──────────▶ LINKED ──────────▶ PREPARED ──────────▶ UP
//!   PG_VERSION       PG_VERSION         and                  PG_VERSION is the guard's text
//!    = original      .seawall = same    .seawall.tmp         PG_VERSION.seawall = original
//!        ▲               │                   │                │ rename .seawall over PG_VERSION
//!        └───────────────┴── remove both ────┴────────────────┘
//! ```
//!
//! `PG_VERSION` exists in every state. The bare server then says: `FATAL: database files are incompatible
//! with server`, with the guard's first word as the version that initialised them.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{Claim, GuardError, beside, fault, remove, sync_directory};

struct Names {
    version: PathBuf,
    original: PathBuf,
    temporary: PathBuf,
}

fn names(data: &Path) -> Names {
    let version = data.join("PG_VERSION");
    Names { original: beside(&version, ".seawall"), temporary: beside(&version, ".seawall.tmp"), version }
}

/// The pool a PGDATA is guarded for, if it is.
pub fn claimed(data: &Path) -> Option<Claim> {
    Claim::read(&names(data).version)
}

/// Raises the guard of a PGDATA.
///
/// # Errors
/// [`GuardError`].
pub fn raise(data: &Path, claim: &Claim) -> Result<(), GuardError> {
    let n = names(data);
    if let Some(found) = Claim::read(&n.version) {
        refuse_other(&n, &found, Some(claim))?;
        return check_original(&n);
    }
    keep_original(&n)?;
    write_text(&n, claim)?;
    fs::rename(&n.temporary, &n.version).map_err(fault("renaming", &n.temporary))?;
    sync_directory(data)
}

/// Lowers it.
///
/// # Errors
/// [`GuardError`].
pub fn lower(data: &Path, claim: Option<&Claim>) -> Result<(), GuardError> {
    let n = names(data);
    if let Some(found) = Claim::read(&n.version) {
        refuse_other(&n, &found, claim)?;
        check_original(&n)?;
        fs::rename(&n.original, &n.version).map_err(fault("restoring", &n.version))?;
    }
    remove(&n.original)?;
    remove(&n.temporary)?;
    sync_directory(data)
}

fn refuse_other(n: &Names, found: &Claim, claim: Option<&Claim>) -> Result<(), GuardError> {
    match claim {
        Some(claim) if claim.uuid != found.uuid => {
            Err(GuardError::OtherPool { at: n.version.clone(), pool: found.pool.display().to_string() })
        }
        _ => Ok(()),
    }
}

fn check_original(n: &Names) -> Result<(), GuardError> {
    if n.original.is_file() && Claim::read(&n.original).is_none() {
        return Ok(());
    }
    Err(GuardError::Broken {
        missing: n.original.clone(),
        remedy: "put PostgreSQL's major version, for example 15, into that file",
    })
}

/// A second name for the original. One that names another file is a leftover of another time.
fn keep_original(n: &Names) -> Result<(), GuardError> {
    match fs::hard_link(&n.version, &n.original) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            remove(&n.original)?;
            fs::hard_link(&n.version, &n.original).map_err(fault("linking", &n.original))
        }
        Err(e) => Err(fault("linking", &n.version)(e)),
    }
}

/// The text in a file of the original's owner and mode, on disk.
fn write_text(n: &Names, claim: &Claim) -> Result<(), GuardError> {
    let like = fs::metadata(&n.version).map_err(fault("asking for", &n.version))?;
    remove(&n.temporary)?;
    let failed = |doing| fault(doing, &n.temporary);
    let mut file = File::create_new(&n.temporary).map_err(failed("creating"))?;
    let text = claim.text("The PG_VERSION of this PostgreSQL directory is kept in PG_VERSION.seawall.");
    file.write_all(text.as_bytes()).map_err(failed("writing"))?;
    let made = file.metadata().map_err(failed("asking for"))?;
    if (made.uid(), made.gid()) != (like.uid(), like.gid()) {
        std::os::unix::fs::fchown(&file, Some(like.uid()), Some(like.gid())).map_err(failed("owning"))?;
    }
    file.set_permissions(fs::Permissions::from_mode(like.mode() & 0o7777))
        .map_err(failed("setting the mode of"))?;
    file.sync_all().map_err(failed("syncing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(uuid: u128) -> Claim {
        Claim { uuid, pool: format!("/pool{uuid}").into() }
    }

    fn fresh() -> (tempfile::TempDir, Names) {
        let dir = tempfile::tempdir().expect("a directory");
        let n = names(dir.path());
        fs::write(&n.version, "15\n").expect("written");
        (dir, n)
    }

    fn listing(dir: &Path) -> Vec<String> {
        let mut all: Vec<_> = fs::read_dir(dir)
            .expect("a directory")
            .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        all.sort();
        all
    }

    /// Its name, and what makes it.
    type State = (&'static str, fn(&Names));

    /// Brings a directory into each state that a crash can leave.
    fn crash_states() -> Vec<State> {
        fn link(n: &Names) {
            fs::hard_link(&n.version, &n.original).expect("linked");
        }
        vec![
            ("down", |_| {}),
            ("linked", link),
            ("half a temporary", |n| {
                link(n);
                fs::write(&n.temporary, "0-SEA").expect("written");
            }),
            ("prepared", |n| {
                link(n);
                write_text(n, &claim(1)).expect("written");
            }),
            ("up", |n| {
                link(n);
                write_text(n, &claim(1)).expect("written");
                fs::rename(&n.temporary, &n.version).expect("renamed");
            }),
            ("a leftover original", |n| fs::write(&n.original, "14\n").expect("written")),
        ]
    }

    #[test]
    fn every_crash_state_can_be_raised_and_lowered() {
        for (name, make) in crash_states() {
            let (dir, n) = fresh();
            make(&n);
            raise(dir.path(), &claim(1)).expect(name);
            assert_eq!(claimed(dir.path()), Some(claim(1)), "{name}");
            assert_eq!(fs::read_to_string(&n.original).expect(name), "15\n", "{name}");
            let (dir, n) = fresh();
            make(&n);
            lower(dir.path(), Some(&claim(1))).expect(name);
            assert_eq!(fs::read_to_string(&n.version).expect(name), "15\n", "{name}");
            assert_eq!(listing(dir.path()), ["PG_VERSION"], "{name}");
        }
    }

    #[test]
    fn another_pools_guard_stays() {
        let (dir, _) = fresh();
        raise(dir.path(), &claim(1)).expect("raised");
        assert!(matches!(raise(dir.path(), &claim(2)), Err(GuardError::OtherPool { .. })));
        assert!(matches!(lower(dir.path(), Some(&claim(2))), Err(GuardError::OtherPool { .. })));
        lower(dir.path(), None).expect("abandoned on purpose");
        assert_eq!(claimed(dir.path()), None);
    }

    #[test]
    fn a_guard_keeps_the_mode_and_says_when_its_original_is_gone() {
        let (dir, n) = fresh();
        fs::set_permissions(&n.version, fs::Permissions::from_mode(0o640)).expect("set");
        raise(dir.path(), &claim(1)).expect("raised");
        assert_eq!(fs::metadata(&n.version).expect("stat").mode() & 0o777, 0o640);
        fs::remove_file(&n.original).expect("removed");
        let error = lower(dir.path(), Some(&claim(1))).expect_err("broken").to_string();
        assert!(error.contains("for example 15"), "{error}");
        assert!(claimed(dir.path()).is_some(), "the guard stays up");
    }
}
