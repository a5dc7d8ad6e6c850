//! The first fsync of a file is real, and on a busy disk it waits behind everything else. Files of which it is known
//! that commits will wait for it are synced by the daemon before that.
//!
//! Input: files as they are registered. Output: their first fsync is absorbed. Which, and when:
//!
//! | file | synced |
//! |---|---|
//! | a new segment of PostgreSQL's log (`xlogtemp.PID`), filled with zeros and synced before it is used | while it is empty, before its first write goes on: the zeros are logged as lengths then |
//! | the segments that are there already when PostgreSQL first writes one | in the background: those that follow it first, then the older ones, which will be renamed and used again |
//!
//! A sync here is like one that the database makes: nothing but its success takes a file into the log, and a write that
//! was not seen meanwhile keeps it out.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use seawall_core::{FileRef, Scope, certain, policy};
use seawall_wire::shm::Preset;

use crate::parts::files::{FileTable, errno};
use crate::state::Daemon;
use crate::{evict, register};

/// Segments of one directory that are synced: a gigabyte, PostgreSQL's default for `max_wal_size`. The others are when
/// they are used.
const MOST: usize = 64;

/// Runs until the daemon ends.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    while let Some(first) = daemon.ahead.next() {
        for path in followers(&first) {
            if daemon.ahead.is_over() {
                return;
            }
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            // What is not there any more, or not to be managed, is nobody's loss. A log that was closed stays closed.
            let Ok(fd) = rustix::fs::open(&path, flags, Mode::empty()) else { continue };
            if let Ok(file) = register::register_if(daemon, &fd, |path| is_wanted(daemon, path)) {
                sync(daemon, file);
            }
        }
    }
}

/// True while a file beside it is managed, and the table has room for whatever else the database may write.
fn is_wanted(daemon: &Daemon, path: &Path) -> bool {
    !is_first(&daemon.files, path)
        && daemon.files.count() < evict::capacity(&daemon.pool, daemon.cache.as_ref()) / 2
}

/// A client's file was registered just now.
pub(crate) fn registered(daemon: &Daemon, fd: &OwnedFd, file: FileRef) {
    let Some(managed) = daemon.files.get(file.slot).filter(|managed| managed.reference == file) else {
        return;
    };
    let Some(root) = daemon.roots.get(managed.root).filter(|root| root.preset == Preset::Postgres) else {
        return;
    };
    let below = managed.path.strip_prefix(&root.path).unwrap_or(&managed.path).as_os_str().as_bytes();
    if policy::is_new_segment(below) && rustix::fs::fstat(fd).is_ok_and(|stat| stat.st_size == 0) {
        sync(daemon, file);
    } else if policy::is_segment(below) && is_first(&daemon.files, &managed.path) {
        daemon.ahead.ask(&managed.path);
    }
}

/// True if no other file of its directory is managed.
fn is_first(files: &FileTable, path: &Path) -> bool {
    !files.all().iter().any(|other| other.path != path && other.path.parent() == path.parent())
}

/// The segments of the directory behind `first`, in the order in which they will be used.
fn followers(first: &Path) -> Vec<PathBuf> {
    let (Some(directory), Some(first)) = (first.parent(), first.file_name()) else { return Vec::new() };
    let names = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut names: Vec<OsString> = names.filter(|name| policy::is_segment(name.as_bytes())).collect();
    names.sort_by_key(|name| (name.as_os_str() <= first, name.clone()));
    names.into_iter().filter(|name| name != first).take(MOST).map(|name| directory.join(name)).collect()
}

/// A whole fsync, as by a client.
fn sync(daemon: &Daemon, file: FileRef) {
    let Some(managed) = daemon.files.get(file.slot) else { return };
    let real = || {
        managed.file.sync_all().map_err(|e| errno(&e))?;
        certain::check(managed.file.as_fd())
    };
    if daemon.engine.absorbs(file, Scope::Whole) {
        return;
    }
    if let Err(error) = daemon.engine.sync(daemon.me(), file, Scope::Whole).by(|_| real()) {
        // The kernel reports it once, and perhaps to nobody else, so nobody's success counts from here on.
        daemon.engine.distrust(file);
        daemon
            .log
            .say(format!("cannot sync {}: {error}; its fsyncs fail from now on", managed.path.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_segments_that_follow_come_first_and_nothing_else_comes() {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let segment = |n: u32| format!("00000001000000000000{n:04X}");
        for name in
            [3, 1, 2, 5, 4].map(segment).into_iter().chain(["00000002.history".into(), "xlogtemp.7".into()])
        {
            std::fs::write(dir.path().join(name), "").expect("written");
        }
        let found = followers(&dir.path().join(segment(3)));
        assert_eq!(found, [4, 5, 1, 2].map(|n| dir.path().join(segment(n))));
        for n in 6..100 {
            std::fs::write(dir.path().join(segment(n)), "").expect("written");
        }
        assert_eq!(followers(&dir.path().join(segment(3))).len(), MOST);
    }
}
