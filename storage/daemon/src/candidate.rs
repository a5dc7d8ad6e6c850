//! A file on its way into the log: each step of its [registration](crate::register), in order.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Stat, fstatfs};
use seawall_core::file::{Begins, Newcomer};
use seawall_core::table::RootEntry;
use seawall_core::{Errno, FileRef, policy};
use seawall_media::{Identity, durable, identity, magic};
use seawall_wire::shm::Policy;

use crate::guard::GuardError;
use crate::parts::files::{Managed, errno, real_sync, reopen};
use crate::parts::guards::Raised;
use crate::parts::roots::is_in_use;
use crate::state::Daemon;
use crate::unmanaged::{BYPASS, LATER, REFUSED, Unmanaged};
use crate::{directories, evict, foreign, forget};

/// The file, and the directory that it belongs to.
pub(crate) struct Candidate<'d> {
    daemon: &'d Daemon,
    root: u32,
    entry: RootEntry,
    path: PathBuf,
    inode: (u64, u64),
    /// Why a sync failed that was made ahead of the registration.
    failed: Option<std::io::Error>,
}

/// Its descriptors.
struct Opened {
    /// For its syncs.
    file: File,
    /// For the destager's.
    destaged: File,
}

/// How a file is after its registration, and if it has failed, why.
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

impl<'d> Candidate<'d> {
    /// A file that its owner, its mode and the room in the table do not keep out.
    pub fn new(daemon: &'d Daemon, stat: &Stat, path: PathBuf, root: u32) -> Result<Self, Unmanaged> {
        // Decided before the lock was ours: the root may be another directory by now.
        let is_in_use = is_in_use(daemon.engine.shm(), root);
        let entry = daemon.roots.get(root).filter(|entry| is_in_use && path.starts_with(&entry.path));
        let entry = entry.ok_or(BYPASS)?;
        if !evict::has_room(daemon) {
            return Err(REFUSED);
        }
        let this = Self { daemon, root, entry, path, inode: (stat.st_dev, stat.st_ino), failed: None };
        if stat.st_uid != this.entry.uid {
            return Err(this.refuse(format!(
                "it belongs to user {}, and its directory to user {}",
                stat.st_uid, this.entry.uid
            )));
        }
        if stat.st_mode & 0o200 == 0 {
            return Err(this.refuse("it is read-only, so recovery could not write it"));
        }
        Ok(this)
    }

    /// The same of one that was synced before its registration, as far as that was needed.
    pub fn synced_ahead(mut self, done: std::io::Result<()>) -> Self {
        self.failed = done.err();
        self
    }

    /// Makes the file behind `fd` a managed one.
    pub fn register(self, fd: &OwnedFd) -> Result<FileRef, Unmanaged> {
        let identity = identity(fd).map_err(|e| self.refuse(e))?;
        self.daemon.watch_for(fd, &self.path, self.inode);
        let registered = self.register_watched(fd, &identity);
        registered.inspect_err(|_| self.daemon.unwatch(fd, self.inode))
    }

    fn register_watched(&self, fd: &OwnedFd, identity: &Identity) -> Result<FileRef, Unmanaged> {
        let opened = self.open(fd)?;
        let begins = self.begins(&opened.file)?;
        let (raised, begins) = self.raise_guard(begins)?;
        self.daemon.guards.watch(&self.daemon.watch, &self.daemon.log);
        let admitted = self.enter(opened, identity, raised, &begins)?;
        self.daemon.left_out.taken(&self.path);
        Ok(admitted)
    }

    /// Opens it for ourselves, once no process writes to it without Seawall.
    fn open(&self, fd: &OwnedFd) -> Result<Opened, Unmanaged> {
        let (daemon, (dev, ino)) = (self.daemon, self.inode);
        // Our own descriptor would count.
        let is_only_open = foreign::is_only_open(fd);
        let file = reopen(fd, false).map_err(|e| self.refuse(format!("cannot open it for syncing: {e}")))?;
        let writers = if is_only_open { Some(Vec::new()) } else { daemon.foreign_writers(dev, ino) };
        let writers = writers.ok_or(LATER)?;
        if !writers.is_empty() {
            return Err(self.refuse(format!("processes {writers:?} write to it without Seawall")));
        }
        directories::settle(daemon, &file, self.inode)
            .map_err(|e| self.refuse(format!("cannot sync it: {e}")))?;
        let destaged = reopen(&file, false).map_err(|e| self.refuse(e))?;
        Ok(Opened { file, destaged })
    }

    /// What its first record may rely on. A file whose every write is to be logged is on the disk with its name, unless its
    /// directory's log has that name and the log has room for what it has.
    fn begins(&self, file: &File) -> Result<How, Unmanaged> {
        if self.entry.policy != Policy::Atomic {
            return Ok(How::Outside);
        }
        // The next sync may succeed and prove nothing.
        if let Some(e) = self.failed.as_ref().filter(|e| has_reached_the_disk(e)) {
            return Ok(How::Failed(format!("cannot sync it: {e}")));
        }
        let begins_unsynced =
            policy::begins_unsynced(self.daemon.engine.shm(), self.path.as_os_str().as_bytes());
        let most = if begins_unsynced { self.daemon.engine.content_most() } else { 0 };
        if directories::has_name(self.daemon, file, &self.path, most) {
            return Ok(How::InLogWithName);
        }
        match make_durable(file, &self.path) {
            Ok(()) => Ok(How::InLog),
            Err(e) if has_reached_the_disk(&e) => Ok(How::Failed(format!("cannot sync it: {e}"))),
            Err(e) => Err(self.refuse(format!("cannot sync it: {e}"))),
        }
    }

    /// Raises its guard, durably. If the disk refuses that, a file whose every write is to be logged fails: without records it
    /// needs no guard.
    fn raise_guard(&self, begins: How) -> Result<(Option<Raised>, How), Unmanaged> {
        match self.daemon.guards.raise(&self.entry, &self.path, &self.daemon.hand()) {
            Ok(raised) => Ok((Some(raised), begins)),
            Err(GuardError::Aside { .. }) => Err(LATER),
            Err(e) if self.entry.policy == Policy::Atomic && e.is_of_the_disk() => {
                Ok((None, How::Failed(e.to_string())))
            }
            Err(e) => Err(self.refuse(e)),
        }
    }

    /// Enters it into the pool's table, the run-time memory and our own tables; last, makes it findable.
    fn enter(
        &self,
        Opened { file, destaged }: Opened,
        identity: &Identity,
        raised: Option<Raised>,
        begins: &How,
    ) -> Result<FileRef, Unmanaged> {
        let (daemon, (dev, ino)) = (self.daemon, self.inode);
        let below = self.path.strip_prefix(&self.entry.path).unwrap_or(Path::new(""));
        let registered = daemon.engine.register(&Newcomer {
            root: self.root,
            identity,
            hint: below,
            inode: self.inode,
            class: policy::class(self.entry.preset, below.as_os_str().as_bytes()),
            begins: begins.kind(),
            is_named_by_directory: is_named_by_directory(&file),
            is_directory: false,
        });
        let registered = registered.map_err(|e| self.refuse(e))?;
        let reference = registered.file();
        if let Some(raised) = raised {
            daemon.guards.protect(reference.slot, raised);
        }
        self.say_if_failed(begins);
        let (root, path) = (self.root, self.path.clone());
        let managed = Managed { reference, root, is_directory: false, file, destaged, path, dev, ino };
        let managed = daemon.files.insert(managed);
        let admitted = match begins {
            // Neither its name nor its content need be on the disk.
            How::InLogWithName => {
                let with_name = || make_durable(&managed.file, &managed.path).map_err(|e| errno(&e));
                registered.admit_with_content(daemon.me(), managed.file.as_fd(), with_name)
            }
            _ => registered.admit(daemon.me(), || real_sync(&managed)),
        };
        admitted.ok_or_else(|| {
            forget::strike_out(daemon, reference.slot, self.inode);
            self.refuse("the table of files is full")
        })
    }

    fn say_if_failed(&self, begins: &How) {
        if let How::Failed(why) = begins {
            self.daemon.log.say(format!(
                "{}: {why}: every write to it fails (EIO) from now on, because its pages could tear",
                self.path.display()
            ));
        }
    }

    /// Says once why it is not managed.
    fn refuse(&self, why: impl ToString) -> Unmanaged {
        let (path, why) = (self.path.display(), why.to_string());
        self.daemon.left_out.note(&self.path, &why);
        let text = format!("not managed (its fsyncs stay real): {path}: {why}");
        self.daemon.log.say_once(&text, &text);
        REFUSED
    }
}

/// True for an error after which it is unknown what is on the disk. The next sync may succeed and prove nothing.
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
