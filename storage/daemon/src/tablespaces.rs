//! What of an atomic PGDATA lies outside of it: its WAL and its tablespaces, reached through links.
//!
//! Input: a data directory. Output: the directories that its links lead to, registered when the database starts
//! (`seawall run`, `attach`) and, for a tablespace that is made later, before the call that makes its link returns:
//! the preload asks for it. So no file can be in one before it is registered; one that has files is left to the
//! next start, because a process may have them open as none of Seawall's. `status` names what is not managed.

use std::path::{Path, PathBuf};

use seawall_core::table::RootEntry;
use seawall_wire::shm::{Policy, Preset, Shm};

use crate::errors::DaemonError;
use crate::parts::roots::Roots;
use crate::roots::{self, AddRoot};
use crate::state::Daemon;

/// The real directories that `pg_wal` and the links in `pg_tblspc` lead to, if they are not below `data`.
pub fn outside(data: &Path) -> Vec<PathBuf> {
    let spaces = std::fs::read_dir(data.join("pg_tblspc")).into_iter().flatten().flatten();
    let links = spaces.map(|entry| entry.path()).chain([data.join("pg_wal")]);
    let real = links.filter_map(|link| std::fs::canonicalize(link).ok());
    real.filter(|path| path.is_dir() && !path.starts_with(data)).collect()
}

/// Those of the databases served here that are not registered: pages in them can tear.
pub(crate) fn missing(roots: &Roots, shm: &Shm) -> Vec<(PathBuf, PathBuf)> {
    let is_atomic = |root: &RootEntry| (root.preset, root.policy) == (Preset::Postgres, Policy::Atomic);
    let roots = roots.in_use(shm).into_iter().map(|(_, root)| root);
    let atomic: Vec<_> = roots.filter(is_atomic).collect();
    let databases = atomic.iter().filter(|root| root.path == root.data);
    let linked =
        databases.flat_map(|root| outside(&root.data).into_iter().map(|path| (root.data.clone(), path)));
    linked.filter(|(_, path)| !atomic.iter().any(|root| path.starts_with(&root.path))).collect()
}

/// Directories below a tablespace: of a version, of a database.
const DEPTH: u32 = 3;

/// True if there is a file in it. What cannot be read may have some.
fn has_files(dir: &Path, depth: u32) -> bool {
    let Ok(entries) = std::fs::read_dir(dir) else { return true };
    entries.flatten().any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => depth == 0 || has_files(&entry.path(), depth - 1),
        _ => true,
    })
}

/// Registers them. Returns the error of the first that could not be; the daemon's log has the errors of all.
pub(crate) fn look(daemon: &Daemon) -> Result<(), DaemonError> {
    missing(&daemon.roots, daemon.engine.shm())
        .into_iter()
        .map(|(data, path)| register(daemon, data, path))
        .fold(Ok(()), Result::and)
}

fn register(daemon: &Daemon, data: PathBuf, path: PathBuf) -> Result<(), DaemonError> {
    let (preset, policy) = (Preset::Postgres.name().into(), Policy::Atomic.name().into());
    let wanted = AddRoot { preset, policy, path: path.clone(), data, recovery: None };
    let added = if has_files(&path, DEPTH) {
        let why = "it already has files: it will be managed from the next start on".into();
        Err(DaemonError::Directory { path: path.clone(), why })
    } else {
        roots::add(daemon, &wanted, None).map(drop)
    };
    match &added {
        Ok(()) => daemon.log.say(format!("a tablespace was made: {}", path.display())),
        Err(e) => {
            let text =
                format!("the tablespace {} is not managed, so its pages can tear: {e}", path.display());
            daemon.log.say_once(&text, &text);
        }
    }
    added
}
