//! syncfs(2) of a database's directory, without syncing all of its file system.
//!
//! PostgreSQL's crash recovery has everything below its directory synced before it replays
//! (`recovery_init_sync_method = syncfs`), as pages that it finds there may not have reached the disk. The kernel would write
//! whatever is in its caches, half a log of it, and the server would wait. What matters to PostgreSQL is on the disk in any
//! case, but for what changed lately, and most of that is in the log:
//!
//! | below the directory | |
//! |---|---|
//! | a file or a directory that has not changed since everything was synced ([`Synced`](crate::parts::synced)) | on the disk |
//! | a file whose fsync would wait for the log alone | in the log |
//! | any other | synced here |
//!
//! Only of a directory for which somebody asked for a short recovery. If too much would have to be synced one by one, or nothing
//! is known yet, it is all of the file system after all; a thread sees to it that this is seldom.

use std::fs::{DirEntry, File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, fstatfs};
use rustix::io::Errno;
use seawall_core::Scope;
use seawall_core::table::RootEntry;
use seawall_media::{identity, magic};
use seawall_wire::shm::Preset;

use crate::state::Daemon;

/// More are not synced one by one.
const MOST: usize = 128;
/// How often it is looked whether they are more.
const REFRESH: Duration = Duration::from_secs(60);

/// Keeps what changed outside the log few, until the daemon ends. By the kernel's syncfs alone: an fsync here would get the
/// error of a write that failed, and whoever opens the file later would not.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    let mut is_due = false;
    while !daemon.lifetime.is_ending() {
        for (i, root) in daemon.roots.in_use(daemon.engine.shm()) {
            let since = daemon.synced.since(&root.identity);
            let is_few = || since.is_some_and(|since| !is_due || few_changed(daemon, &root, since).is_some());
            if is_wanted(daemon, i, &root) && !is_few() {
                sync_whole(daemon, &root);
            }
        }
        is_due = !daemon.synced.wait(REFRESH);
    }
}

/// Makes durable what is below this directory. False: the caller has to.
pub(crate) fn sync(daemon: &Daemon, directory: &OwnedFd) -> bool {
    let Ok(wanted) = identity(directory) else { return false };
    let roots = daemon.roots.in_use(daemon.engine.shm());
    let Some((i, root)) = roots.into_iter().find(|(_, root)| root.identity == wanted) else { return false };
    if !is_wanted(daemon, i, &root) {
        return false;
    }
    // Taken before the look.
    let mark = daemon.synced.mark();
    let changed = daemon.synced.since(&root.identity).and_then(|since| few_changed(daemon, &root, since));
    let (Some(mark), Some(changed)) = (mark, changed) else {
        let done = sync_whole(daemon, &root);
        if done {
            daemon.log.say("the server had its directory synced, and with it the whole file system");
        }
        return done;
    };
    // The caller has had the file system open since before: its own syncfs reports a write that failed.
    if changed.paths.iter().any(|path| sync_one(path).is_err()) {
        return false;
    }
    daemon.synced.is_synced(&root.identity, mark);
    daemon.log.say(format!(
        "the server had its directory synced: of {} files and directories {} had changed outside the log",
        changed.all,
        changed.paths.len()
    ));
    true
}

fn is_wanted(daemon: &Daemon, i: u32, root: &RootEntry) -> bool {
    root.preset == Preset::Postgres && daemon.roots.goal(i).is_some()
}

/// By the kernel, where ctime is to be believed. False: nothing is known of it.
fn sync_whole(daemon: &Daemon, root: &RootEntry) -> bool {
    let Ok(directory) = File::open(&root.path) else { return false };
    let is_believed = fstatfs(&directory).is_ok_and(|fs| magic::has_believed_directories(fs.f_type as u64));
    let Some(mark) = daemon.synced.mark().filter(|_| is_believed) else { return false };
    let done = rustix::fs::syncfs(&directory).is_ok();
    if done {
        daemon.synced.is_synced(&root.identity, mark);
    }
    done
}

/// What changed outside the log. `None`: it is too much to be synced one by one, or may not be seen.
fn few_changed(daemon: &Daemon, root: &RootEntry, since: i64) -> Option<Changed> {
    let in_the_log = |file: &Metadata| {
        let known = daemon.engine.find(file.dev(), file.ino());
        known.is_some_and(|file| daemon.engine.absorbs(file, Scope::Whole))
    };
    changed(&root.path, since, in_the_log).ok().filter(|changed| changed.paths.len() <= MOST)
}

/// What has to be synced, and how many were looked at.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changed {
    paths: Vec<PathBuf>,
    all: usize,
}

/// Everything below a directory, itself too, on its file system.
fn changed(root: &Path, since: i64, in_the_log: impl Fn(&Metadata) -> bool) -> io::Result<Changed> {
    let mut changed = Changed::default();
    let top = root.symlink_metadata()?;
    let mut look = |path: &Path, found: &Metadata| {
        changed.all += 1;
        if found.ctime() >= since && !(found.is_file() && in_the_log(found)) {
            changed.paths.push(path.to_owned());
        }
    };
    look(root, &top);
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let entry = entry?;
            let Some(found) = still_there(&entry)? else { continue };
            if found.dev() != top.dev() || !(found.is_file() || found.is_dir()) {
                continue;
            }
            look(&entry.path(), &found);
            if found.is_dir() {
                directories.push(entry.path());
            }
        }
    }
    Ok(changed)
}

fn still_there(entry: &DirEntry) -> io::Result<Option<Metadata>> {
    match entry.metadata() {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn sync_one(path: &Path) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => rustix::fs::fsync(file),
        // The server's own, of a moment: its directory has changed as well.
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_changed_since_and_is_not_in_the_log_is_synced() {
        let data = tempfile::tempdir().expect("a directory");
        let at = |name: &str| data.path().join(name);
        fs::create_dir(at("base")).expect("made");
        for name in ["base/1", "base/2", "pid"] {
            fs::write(at(name), "x").expect("written");
        }
        std::os::unix::fs::symlink("/", at("link")).expect("made");
        let ctime = |name: &str| at(name).metadata().expect("there").ctime();
        let logged = at("base/1").metadata().expect("there").ino();
        let mut found = changed(data.path(), ctime("pid") - 1, |file| file.ino() == logged).expect("read");
        found.paths.sort();
        let expected = ["", "base", "base/2", "pid"].map(|name| match name {
            "" => data.path().to_owned(),
            name => at(name),
        });
        assert_eq!(found, Changed { paths: expected.to_vec(), all: 5 });
        assert!(found.paths.iter().all(|path| sync_one(path).is_ok()));
        let later = changed(data.path(), ctime("pid") + 1, |_| false).expect("read");
        assert_eq!(later, Changed { paths: Vec::new(), all: 5 });
        assert_eq!(sync_one(&at("gone")), Ok(()));
        assert!(changed(&at("gone"), 0, |_| false).is_err());
    }
}
