//! Registration: a file becomes managed, or is left to the kernel with a reason.
//!
//! Order: watched, so that no foreign writer slips in; looked at for those that are there already; its guard
//! up, durably; in the pool's table; in the run-time memory; findable. Only then the client hears of it. A
//! crash between any two steps leaves at most a guard without records or an entry nobody refers to. A file whose
//! every write is to be logged is synced, with its name, before it is in the table, unless it is empty and its directory's log
//! has its name: recovery finds it again, or makes it again. If the disk refuses that sync, the file is managed all the same,
//! so that everybody's writes of it fail.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat, fstatfs};
use seawall_core::file::{Begins, Newcomer};
use seawall_core::policy::{self, Manage, SQLITE_MAGIC, decide_by_content};
use seawall_core::{Engine, Errno, FileRef};
use seawall_media::{durable, identity, magic};
use seawall_wire::shm::Policy;

use crate::guard::GuardError;
use crate::parts::files::{FileTable, Managed, path_of, real_sync, reopen};
use crate::parts::roots::is_in_use;
use crate::state::Daemon;
use crate::unmanaged::{BYPASS, LATER, REFUSED, SUSPENDED, Unmanaged};
use crate::{directories, evict, foreign, forget};

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
    let _alone = daemon.registering.turn();
    if daemon.registering.is_given_up() || !wanted(&path) {
        return Err(REFUSED);
    }
    if let Some(known) = known(&daemon.engine, &daemon.files, &stat) {
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
    new(daemon, fd, &stat, path, root)
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

fn new(daemon: &Daemon, fd: &OwnedFd, stat: &Stat, path: PathBuf, root: u32) -> Result<FileRef, Unmanaged> {
    let refuse = |why: String| {
        daemon.left_out.note(&path, &why);
        daemon.log.say_once(
            &format!("{}{why}", path.display()),
            format!("not managed (its fsyncs stay real): {}: {why}", path.display()),
        );
        REFUSED
    };
    // Decided before the lock was ours: the root may be another directory by now.
    let is_in_use = is_in_use(daemon.engine.shm(), root);
    let entry =
        daemon.roots.get(root).filter(|entry| is_in_use && path.starts_with(&entry.path)).ok_or(BYPASS)?;
    if !evict::has_room(daemon) {
        return Err(REFUSED);
    }
    if stat.st_uid != entry.uid {
        return Err(refuse(format!(
            "it belongs to user {}, and its directory to user {}",
            stat.st_uid, entry.uid
        )));
    }
    if stat.st_mode & 0o200 == 0 {
        return Err(refuse("it is read-only, so recovery could not write it".into()));
    }
    let identity = identity(fd).map_err(|e| refuse(e.to_string()))?;
    let atomic = entry.policy == Policy::Atomic;
    let inode = (stat.st_dev, stat.st_ino);
    daemon.watch_for(fd, &path, inode);
    let only = foreign::is_only_open(fd);
    let file = reopen(fd, false).map_err(|e| refuse(format!("cannot open it for syncing: {e}")))?;
    let foreign = if only { Some(Vec::new()) } else { daemon.foreign_writers(inode.0, inode.1) };
    let Some(foreign) = foreign else {
        daemon.unwatch(&file, inode);
        return Err(LATER);
    };
    if !foreign.is_empty() {
        daemon.unwatch(&file, inode);
        return Err(refuse(format!("processes {foreign:?} write to it without Seawall")));
    }
    directories::settle(daemon, &file, inode).map_err(|e| refuse(format!("cannot sync it: {e}")))?;
    let destaged = reopen(&file, false).map_err(|e| refuse(e.to_string()))?;
    let is_named = atomic && directories::has_name(daemon, &file, &path);
    let mut begins = match (atomic, is_named) {
        (true, true) => How::InLogWithName,
        (true, false) => How::InLog,
        (false, _) => How::Outside,
    };
    if atomic
        && !is_named
        && let Err(e) = make_durable(&file, &path)
    {
        if !has_reached_the_disk(&e) {
            return Err(refuse(format!("cannot sync it: {e}")));
        }
        begins = How::Failed(format!("cannot sync it: {e}"));
    }
    let raised = match daemon.guards.raise(&entry, &path, &daemon.claim()) {
        Err(GuardError::Aside { .. }) => {
            daemon.unwatch(&file, inode);
            return Err(LATER);
        }
        Err(e) if atomic && e.is_of_the_disk() => {
            // A file that has no records needs no guard.
            begins = How::Failed(e.to_string());
            None
        }
        raised => Some(raised.map_err(|e| refuse(e.to_string()))?),
    };
    daemon.guards.watch(&daemon.watch, &daemon.log);
    let below = path.strip_prefix(&entry.path).unwrap_or(Path::new(""));
    let registered = daemon.engine.register(&Newcomer {
        root,
        identity: &identity,
        hint: below,
        inode,
        class: policy::class(entry.preset, below.as_os_str().as_bytes()),
        begins: begins.kind(),
        is_named_by_directory: is_named_by_directory(&file),
        is_directory: false,
    });
    let registered = registered.map_err(|e| refuse(e.to_string()))?;
    let reference = registered.file();
    if let Some(raised) = raised {
        daemon.guards.protect(reference.slot, raised);
    }
    if let How::Failed(why) = &begins {
        daemon.log.say(format!(
            "{}: {why}: every write to it fails (EIO) from now on, because its pages could tear",
            path.display()
        ));
    }
    let (dev, ino) = inode;
    let managed = daemon.files.insert(Managed {
        reference,
        root,
        is_directory: false,
        file,
        destaged,
        path: path.clone(),
        dev,
        ino,
    });
    let sync = || if is_named { Ok(()) } else { real_sync(&managed) };
    let admitted = registered.admit(daemon.me(), sync).ok_or_else(|| {
        forget::strike_out(daemon, reference.slot, inode);
        refuse("the table of files is full".into())
    })?;
    daemon.left_out.taken(&path);
    Ok(admitted)
}

/// How a file is after its registration, and of one that failed why.
enum How {
    Outside,
    InLog,
    InLogWithName,
    Failed(String),
}

impl How {
    fn kind(&self) -> Begins {
        match self {
            Self::Outside => Begins::Outside,
            Self::InLog => Begins::InLog,
            Self::InLogWithName => Begins::InLogWithName,
            Self::Failed(_) => Begins::Failed,
        }
    }
}

/// True for an error that leaves nobody knowing what is on the disk. The next sync may succeed and prove nothing.
fn has_reached_the_disk(error: &std::io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    !matches!(errno, None | Some(Errno::BADF | Errno::INTR | Errno::INVAL | Errno::NOSYS | Errno::ROFS))
}

/// Content, inode and name on disk: from here on the log can stand for what is written. (A file that is not
/// logged from its first write gets the same by its first fsync, which is real.)
fn make_durable(file: &File, path: &Path) -> std::io::Result<()> {
    file.sync_all()?;
    durable::sync_name(path)
}

/// What is known of the file system's ways with names.
fn is_named_by_directory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|fs| magic::has_believed_directories(fs.f_type as u64))
}
