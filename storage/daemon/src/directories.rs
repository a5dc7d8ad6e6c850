//! Directories in the log: changes of names in them are records (`engine::names` in seawall-core).
//!
//! Registered like files, with the same guard: those of any program's data (`--preset any`), on a file system that keeps the
//! order of names. What changes one unseen, by a program without Seawall, shows in its change time: whoever meets that first
//! takes it out of the log, at the latest this daemon at its next [`review`].

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use seawall_core::file::captured::Capture;
use seawall_core::file::{Begins, Flag, Newcomer};
use seawall_core::format::Handle;
use seawall_core::table::RootEntry;
use seawall_core::{Errno, FileRef, Place, Turn, certain, directory, policy};
use seawall_media::ordered::keeps_names_in_order;
use seawall_media::{Identity, durable, identity};
use seawall_stats::Class;

use crate::parts::files::{Managed, path_of, reopen};
use crate::parts::roots::is_in_use;
use crate::state::Daemon;
use crate::unmanaged::{BYPASS, LATER, REFUSED, Unmanaged};
use crate::{evict, forget};

/// Makes the directory behind `fd` a managed one: the next real fsync of it takes it into the log. A client that hears
/// [`REFUSED`] does not ask for this directory again; what may be otherwise in a moment is [`LATER`].
pub(crate) fn register(daemon: &Daemon, fd: &OwnedFd, stat: &Stat) -> Result<FileRef, Unmanaged> {
    in_turn(daemon, fd, |path, root| register_in_turn(daemon, fd, stat, path, root))
}

/// Has `register` make a directory managed when nobody else registers, forgets or closes.
pub(crate) fn in_turn(
    daemon: &Daemon,
    fd: &OwnedFd,
    register: impl FnOnce(PathBuf, u32) -> Result<FileRef, Unmanaged>,
) -> Result<FileRef, Unmanaged> {
    let path = path_of(fd).map_err(|_| BYPASS)?;
    let root = policy::decide_directory(daemon.engine.shm(), path.as_os_str().as_bytes()).ok_or(BYPASS)?;
    let _alone = daemon.registering.turn();
    if daemon.registering.is_given_up() {
        return Err(LATER);
    }
    register(path, root)
}

/// The same of one whose root was decided, for a caller who has the turn of `registering`.
fn register_in_turn(
    daemon: &Daemon,
    fd: &OwnedFd,
    stat: &Stat,
    path: PathBuf,
    root: u32,
) -> Result<FileRef, Unmanaged> {
    if let Some(known) = daemon.engine.find(stat.st_dev, stat.st_ino) {
        return Ok(known);
    }
    if evict::is_full(daemon) && daemon.crowding.is_gone((stat.st_dev, stat.st_ino)) {
        return Err(LATER);
    }
    let newcomer = admissible(daemon, fd, stat, path, root)?;
    enter(daemon, newcomer, None)
}

/// A directory that may be managed.
pub(crate) struct Admissible<'a> {
    pub fd: &'a OwnedFd,
    pub path: PathBuf,
    root: u32,
    pub entry: RootEntry,
    identity: Identity,
    inode: (u64, u64),
}

impl Admissible<'_> {
    /// How records refer to it.
    pub fn handle(&self) -> Option<Handle> {
        Handle::new(self.identity.kind, &self.identity.handle)
    }
}

/// One whose root is in use, whose names can be records, and for which there is room. The caller has the turn of
/// `registering`.
pub(crate) fn admissible<'a>(
    daemon: &Daemon,
    fd: &'a OwnedFd,
    stat: &Stat,
    path: PathBuf,
    root: u32,
) -> Result<Admissible<'a>, Unmanaged> {
    let shm = daemon.engine.shm();
    let entry = daemon.roots.get(root).filter(|entry| is_in_use(shm, root) && path.starts_with(&entry.path));
    let entry = entry.ok_or(BYPASS)?;
    if daemon.freeze.covers(&entry) || daemon.is_alone() {
        return Err(LATER);
    }
    suits(fd, stat, &entry).map_err(|why| refuse(daemon, &path, &why))?;
    if !evict::has_room(daemon) {
        return Err(LATER);
    }
    let identity = comparable(fd).map_err(|why| refuse(daemon, &path, &why))?;
    Ok(Admissible { fd, path, root, entry, identity, inode: (stat.st_dev, stat.st_ino) })
}

/// Says once why the names in a directory are not in the log.
fn refuse(daemon: &Daemon, path: &Path, why: &str) -> Unmanaged {
    daemon.left_out.note(path, why);
    let text = format!("names in {} are not in the log (their syncs stay real): {why}", path.display());
    daemon.log.say_once(&text, &text);
    REFUSED
}

/// Whether changes of the names in it can be records. If not, why.
fn suits(fd: &OwnedFd, stat: &Stat, entry: &RootEntry) -> Result<(), String> {
    if !keeps_names_in_order(fd) {
        let why = "its file system does not keep changes of names in order: XFS does, and so does ext4 with a \
                   journal";
        return Err(why.into());
    }
    if stat.st_uid != entry.uid {
        return Err(format!("it belongs to user {}, and its database to user {}", stat.st_uid, entry.uid));
    }
    if is_case_folded(fd) {
        return Err("its names do not distinguish upper and lower case".into());
    }
    Ok(())
}

/// What tells it from other directories, if a file's handle there fits into a record. If not, why.
fn comparable(fd: &OwnedFd) -> Result<Identity, String> {
    let identity = identity(fd).map_err(|e| e.to_string())?;
    match Handle::new(identity.kind, &identity.handle) {
        Some(_) => Ok(identity),
        None => Err("its file handles are too long".into()),
    }
}

/// A directory whose name the log has.
pub(crate) struct Named<'a> {
    /// The one above it.
    pub above: &'a Managed,
    /// Makes a record of each name in it. False: it is to be synced.
    pub record: &'a dyn Fn(&Turn<'_, Managed>) -> bool,
}

/// Raises its guard and enters it into the tables; last, makes it findable. One whose name the log has is in the log from then on,
/// and guarded with the one above it until the disk has it.
pub(crate) fn enter(
    daemon: &Daemon,
    Admissible { fd, path, root, entry, identity, inode: (dev, ino) }: Admissible<'_>,
    named: Option<Named<'_>>,
) -> Result<FileRef, Unmanaged> {
    let refused = |e: &dyn std::fmt::Display| refuse(daemon, &path, &e.to_string());
    let open = || reopen(fd, false).map_err(|e| refused(&format!("cannot open it for syncing: {e}")));
    let (file, destaged) = (open()?, open()?);
    let guarded = named.as_ref().map_or_else(|| guarded(&path), |named| daemon.guarded_path(named.above));
    let raised = daemon.guards.raise(&entry, &guarded, &daemon.hand()).map_err(|e| refused(&e))?;
    daemon.guards.watch(&daemon.watch, &daemon.log);
    let registered = daemon.engine.register(&Newcomer {
        root,
        identity: &identity,
        hint: path.strip_prefix(&entry.path).unwrap_or(Path::new("")),
        inode: (dev, ino),
        class: Class::Other,
        begins: if named.is_some() { Begins::Unborn } else { Begins::Outside },
        is_named_by_directory: true,
        is_directory: true,
    });
    let registered = registered.map_err(|e| refused(&e))?;
    let reference = registered.file();
    daemon.guards.protect(reference.slot, raised);
    let managed = Managed { reference, root, is_directory: true, file, destaged, path, dev, ino };
    let managed = daemon.files.insert(managed);
    let admitted = match named {
        None => registered.admit(daemon.me(), || Ok(())),
        Some(named) => registered.admit_with_names(daemon.me(), managed.as_ref(), named.record),
    };
    admitted.ok_or_else(|| {
        forget::strike_out(daemon, reference.slot, (dev, ino));
        LATER
    })
}

/// True if the log has the name of the file at `path`, which has just been made, and has `most` bytes at most: its directory is
/// in the log, or gets there now. Asked for by whoever has the turn of `registering`.
pub(crate) fn has_name(daemon: &Daemon, file: &File, path: &Path, most: u64) -> bool {
    let is_small = |stat: &Stat| stat.st_size as u64 <= most && stat.st_nlink == 1;
    let is = rustix::fs::fstat(file).ok().filter(|stat| is_small(stat) && daemon.engine.has_room());
    let named = is.zip(path.parent()).zip(path.file_name());
    let Some(((is, above), name)) = named else { return false };
    let Some(directory) = directory_at(daemon, above) else { return false };
    // Nobody is waited for: whoever changes names there may wait for this.
    let turn = daemon.engine.try_enter_directory(daemon.me(), directory.reference, directory.as_ref());
    let Some(turn) = turn.filter(Turn::is_in_log) else { return false };
    let found = rustix::fs::statat(&directory.destaged, name, AtFlags::SYMLINK_NOFOLLOW);
    let has =
        found.is_ok_and(|found| (found.st_dev, found.st_ino) == (is.st_dev, is.st_ino) && is_small(&found));
    drop(turn);
    has
}

/// The managed directory at a path, in the log if the disk takes what is in it by now.
fn directory_at(daemon: &Daemon, path: &Path) -> Option<Arc<Managed>> {
    let root = policy::decide_directory(daemon.engine.shm(), path.as_os_str().as_bytes())?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    let known = daemon.engine.find(stat.st_dev, stat.st_ino);
    let reference = match known {
        Some(known) => known,
        None => register_in_turn(daemon, &fd, &stat, path.to_owned(), root).ok()?,
    };
    let directory = daemon.files.get(reference.slot).filter(|found| found.reference == reference)?;
    let slot = daemon.engine.file(reference)?;
    if known.is_none() {
        // Its own name: what is above it is not in the log.
        durable::sync_name(path).ok()?;
    }
    // Whoever is inside may wait for this.
    if !slot.state().has(Flag::TRACKED) && slot.holder() == 0 {
        daemon.engine.sync_directory_names(daemon.me(), reference, directory.as_ref())?.ok()?;
    }
    Some(directory)
}

/// True if names that differ are one (ext4's feature casefold): a record could not tell which.
fn is_case_folded(fd: &OwnedFd) -> bool {
    const FS_CASEFOLD_FL: u32 = 0x4000_0000;
    rustix::fs::ioctl_getflags(fd).is_ok_and(|flags| flags.bits() & FS_CASEFOLD_FL != 0)
}

/// A path in a directory, for what asks where the guard of a file is.
pub(crate) fn guarded(directory: &Path) -> std::path::PathBuf {
    directory.join(seawall_core::stand_in::NOTE)
}

impl Place for Managed {
    fn changed_before(&self) -> u64 {
        0
    }

    fn changed(&self) -> u64 {
        directory::changed(self.file.as_fd())
    }

    /// All of the file system, if files are to be synced too.
    fn sync(&self, with_files: bool) -> Result<(), Errno> {
        if with_files { rustix::fs::syncfs(&self.file) } else { rustix::fs::fsync(&self.file) }
    }

    fn check(&self) -> Result<(), Errno> {
        certain::check(self.file.as_fd())
    }
}

/// Nobody else changes names in it meanwhile.
fn turn_in<'a>(daemon: &'a Daemon, directory: &'a Managed) -> Turn<'a, Managed> {
    daemon.engine.enter_directory(daemon.me(), directory.reference, directory)
}

/// Runs a change of the daemon's own in a directory, which the log need not know: the directory stays in the log.
pub(crate) fn changing<R>(daemon: &Daemon, directory: &Path, change: impl FnOnce() -> R) -> R {
    let managed = daemon.directory(directory);
    let turn = managed.as_ref().map(|managed| turn_in(daemon, managed));
    let done = change();
    turn.into_iter().for_each(Turn::finish);
    done
}

/// Takes a directory out of the log.
pub(crate) fn leave(daemon: &Daemon, directory: &Managed) {
    let turn = turn_in(daemon, directory);
    turn.leave();
    turn.finish_outside();
}

/// A directory is about to be removed: it is not managed any more, unless the disk refuses what its log has. The caller has the
/// turn of `registering`.
pub(crate) fn give_up(daemon: &Daemon, directory: &Managed) {
    leave(daemon, directory);
    if !daemon.engine.is_dirty(directory.reference) {
        forget::forget(daemon, directory.reference.slot);
    }
}

/// Takes those out of the log in which something happened unseen.
pub(crate) fn review(daemon: &Daemon) {
    if !daemon.engine.has_directories() {
        return;
    }
    for directory in daemon.files.all().iter().filter(|file| file.is_directory) {
        let slot = daemon.engine.file(directory.reference);
        if slot.is_some_and(|slot| slot.is_dirty() && slot.state().has(Flag::TRACKED)) {
            // It looks by itself, with nobody inside.
            turn_in(daemon, directory).finish();
        }
    }
}

/// So often a file is looked for that may be under way, or another one.
const LOOKS: u32 = 100;

/// A file gets records of its own: what a directory's log has of it as a whole is on the disk, and over.
///
/// # Errors
/// What the disk said.
pub(crate) fn settle(daemon: &Daemon, file: &File, inode: (u64, u64)) -> std::io::Result<()> {
    let mut looks = 0..LOOKS;
    let captured = loop {
        match daemon.engine.capture_of(inode) {
            Capture::No => return Ok(()),
            Capture::Whole(captured) => break captured,
            Capture::UnderWay(slot) => {
                looks.next().ok_or_else(|| std::io::Error::other("it is captured all the time"))?;
                match daemon.files.get(slot).filter(|managed| managed.is_directory) {
                    // Until that is over.
                    Some(directory) => turn_in(daemon, &directory).finish(),
                    None => std::thread::yield_now(),
                }
            }
        }
    };
    let since = daemon.engine.next_lsn();
    file.sync_all()?;
    certain::check(file.as_fd())?;
    let known = daemon.files.get(captured.directory.slot);
    let known = known.filter(|directory| directory.reference == captured.directory);
    let directory = known.ok_or_else(|| std::io::Error::other("its directory is not known"))?;
    let turn = turn_in(daemon, &directory);
    let is_over = turn.settle(&captured, inode, since, || certain::fdatasync(file.as_fd()));
    turn.finish();
    if is_over { Ok(()) } else { Err(std::io::Error::other("its directory cannot be synced")) }
}
