//! Registration: a file becomes managed, or is left to the kernel with a reason.
//!
//! Order: watched, so that no foreign writer slips in; looked at for those that are there already; its guard
//! up, durably; in the pool's table; in the run-time memory; findable. Only then the client hears of it. A
//! crash between any two steps leaves at most a guard without records or an entry nobody refers to. A file whose
//! every write is to be logged is synced, with its name, before it is in the table, unless its directory's log has its
//! name and the log takes what it has: recovery finds it again, or makes it again. If the disk refuses that sync, the file is managed all the same,
//! so that everybody's writes of it fail.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FileType, Stat};
use seawall_core::policy::{Manage, SQLITE_MAGIC, begins_unsynced, decide_by_content};
use seawall_core::{Engine, FileRef};
use seawall_wire::shm::Policy;

use crate::candidate::Candidate;
use crate::directories;
use crate::parts::files::{FileTable, path_of, reopen};
use crate::state::Daemon;
use crate::unmanaged::{BYPASS, LATER, REFUSED, SUSPENDED, Unmanaged};

/// Makes the file behind `fd` a managed one.
pub(crate) fn register(daemon: &Daemon, fd: &OwnedFd) -> Result<FileRef, Unmanaged> {
    register_if(daemon, fd, |_| true)
}

/// Makes it one if that is still wanted when nobody else registers, forgets or closes.
pub(crate) fn register_if(
    daemon: &Daemon,
    fd: &OwnedFd,
    wanted: impl FnOnce(&Path) -> bool,
) -> Result<FileRef, Unmanaged> {
    let stat = rustix::fs::fstat(fd).map_err(|_| BYPASS)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        return directories::register(daemon, fd, &stat);
    }
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_nlink == 0 {
        return Err(BYPASS);
    }
    let path = path_of(fd).map_err(|_| BYPASS)?;
    let is_database = || is_sqlite(fd);
    let decided = decide_by_content(daemon.engine.shm(), path.as_os_str().as_bytes(), is_database);
    let (root, manage) = match decided {
        None | Some((_, Manage::Bypass)) => return Err(BYPASS),
        Some(decided) => decided,
    };
    let ahead = if manage == Manage::Now { sync_ahead(daemon, fd, &stat, &path) } else { Ok(()) };
    let _alone = daemon.registering.turn();
    if daemon.registering.is_given_up() || !wanted(&path) {
        return Err(REFUSED);
    }
    if let Some(known) = known(&daemon.engine, &daemon.files, &stat) {
        if ahead.is_err() {
            // Whoever registered it may have synced it after the kernel had dropped its pages.
            daemon.engine.file(known).inspect(|slot| slot.distrust());
        }
        return Ok(known);
    }
    if let Some(frozen) = daemon.roots.get(root).filter(|root| daemon.freeze.covers(root)) {
        return Err(if frozen.policy == Policy::Atomic { SUSPENDED } else { LATER });
    }
    if daemon.is_alone() {
        return Err(LATER);
    }
    if manage == Manage::IfSqlite && !is_sqlite(fd) {
        return Err(BYPASS);
    }
    Candidate::new(daemon, &stat, path, root)?.synced_ahead(ahead).register(fd)
}

/// Whoever made the file may have written it around the log until here. What is much by now is synced while nobody waits for the
/// turn, and while its maker goes on; a second sync is left with little.
fn sync_ahead(daemon: &Daemon, fd: &OwnedFd, stat: &Stat, path: &Path) -> std::io::Result<()> {
    let engine = &daemon.engine;
    let is_much = stat.st_size as u64 > engine.content_most()
        && engine.has_rights()
        && begins_unsynced(engine.shm(), path.as_os_str().as_bytes());
    let done = if is_much { reopen(fd, false).and_then(|file| file.sync_all()) } else { Ok(()) };
    engine.revoke_rights();
    done
}

/// True if it is an SQLite database. A front that cannot see when a file's content becomes one asks for any file that it
/// is going to change unseen: that one must not get the guard of a database.
fn is_sqlite(fd: &OwnedFd) -> bool {
    let mut magic = SQLITE_MAGIC.map(|_| 0);
    let read = reopen(fd, false).and_then(|file| file.read_exact_at(&mut magic, 0));
    read.is_ok() && magic == SQLITE_MAGIC
}

/// The slot it has already: another process was quicker.
fn known(engine: &Engine, files: &FileTable, stat: &Stat) -> Option<FileRef> {
    let known = engine.find(stat.st_dev, stat.st_ino)?;
    files.get(known.slot).map(|managed| managed.reference)
}
