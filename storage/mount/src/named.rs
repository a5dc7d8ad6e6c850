//! Directories whose names are in the log, as the mount's requests reach them. What becomes of a request is every front's
//! alike: [`seawall_core::naming`].
//!
//! | request | in such a directory |
//! |---|---|
//! | the first fsync of a file of up to [`LARGEST`](naming::LARGEST) bytes | all of it is a record: nothing waits for the disk |
//! | a later one | the file is registered, or synced for real and its directory leaves the log |
//! | fsyncdir | nothing is left to do |
//! | a change of the size of a file that was synced and has no records, by any program's preset | is durable when it is answered ([`resizing`]) |

mod here;

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, fstat, openat};
use seawall_core::client::Synced;
use seawall_core::{Errno, naming, policy};
use seawall_wire::shm::Preset;

use crate::log::Log;
use crate::node::Node;
pub use here::{Here, here};

/// A name, as calls take it. `None`: it has a zero in it, and is none.
pub fn text(name: &OsStr) -> Option<CString> {
    CString::new(name.as_bytes()).ok()
}

/// Runs a call that changes the name `name` in a directory, by `logged` if that is in the log, else bare.
pub fn at<R>(
    log: &Log,
    fd: BorrowedFd<'_>,
    name: &OsStr,
    logged: impl FnOnce(&Here<'_>, &CStr, &dyn Fn() -> R) -> R,
    call: impl Fn() -> R,
) -> R {
    let known = log.engine.directories();
    match here(log, fd).zip(text(name)) {
        Some((here, name)) => logged(&here, &name, &call),
        None => outside(log, known, [fd], false, call),
    }
}

/// The directory called `name` is about to go, or to be elsewhere, by no record: it leaves the log. A change [`outside`] keeps it
/// there.
pub fn leaving(log: &Log, fd: BorrowedFd<'_>, name: &OsStr) {
    if let Some(itself) = text(name).and_then(|name| here::itself(log, fd, &name)) {
        naming::leaving(&itself);
    }
}

/// A name in the directory is about to go, or to lead elsewhere: it is in the log by then, if its program counts on the order of such
/// changes and of its syncs. True if it does and the directory is not: [`after_change`] is due.
pub fn before_change(log: &Log, node: &Node) -> bool {
    let is_known = || log.engine.find(node.dev, node.ino).is_some();
    let is_ordered = |path: &Path| policy::is_ordered(log.engine.shm(), path.as_os_str().as_bytes());
    if !policy::has_ordered(log.engine.shm())
        || is_known()
        || !node.name().is_some_and(|path| is_ordered(&path))
    {
        return false;
    }
    // The real one that takes it into the log.
    let _ = sync_directory(log, node);
    !is_known()
}

/// The change is over, and no log has it. The program's next syncs may be records, which wait for no journal of the file system:
/// so it is durable before them.
pub fn after_change(node: &Node) {
    if let Ok(open) = node.open(OFlags::RDONLY | OFlags::DIRECTORY) {
        // The calls that made it have no error for this.
        let _ = rustix::fs::fsync(open);
    }
}

/// A directory in this one is gone: that is durable, if its program counts on that.
pub fn after_removal(log: &Log, node: &Node) {
    let shm = log.engine.shm();
    let is_root = |path: &Path| policy::is_ordered_root(shm, path.as_os_str().as_bytes());
    if policy::has_ordered(shm) && node.name().is_some_and(|path| is_root(&path)) {
        after_change(node);
    }
}

/// fsync(2) of a directory. `None`: it is not in the log, and may not be.
pub fn sync_directory(log: &Log, node: &Node) -> Option<Result<(), Errno>> {
    let take_new = || register_new(log, node.fd());
    if log.engine.find(node.dev, node.ino).is_none() && !log.engine.syncs_new((node.dev, node.ino), take_new)
    {
        register(log, node);
    }
    let here = here(log, node.fd())?;
    log.engine.sync_directory_names(log.me(), here.reference, &here)
}

/// Asks the daemon for a directory that was made lately.
fn register_new(log: &Log, fd: BorrowedFd<'_>) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(fd, ".", flags, Mode::empty()).is_ok_and(|open| log.daemon.register_new(open.as_fd()))
}

/// The directory behind `fd`, in which a file is about to be synced, if it is in the log or, as one that was made lately, may enter
/// it now.
fn taken<'f>(log: &'f Log, fd: BorrowedFd<'f>) -> Option<Here<'f>> {
    if let Some(here) = here(log, fd) {
        return Some(here);
    }
    let stat = fstat(fd).ok()?;
    log.engine.takes_new((stat.st_dev, stat.st_ino), || register_new(log, fd));
    here(log, fd)
}

/// Runs a call that changes names in these directories, not all of which were in the log a moment ago. `takes`: it may take names
/// away, or give one to a file that was there. `known`: [`directories`](seawall_core::Engine::directories) before the look.
pub fn outside<R, const N: usize>(
    log: &Log,
    known: u32,
    fds: [BorrowedFd<'_>; N],
    takes: bool,
    call: impl FnOnce() -> R,
) -> R {
    let inode = |fd: &BorrowedFd<'_>| fstat(fd).map(|stat| (stat.st_dev, stat.st_ino)).ok();
    let shrinking = fds.iter().filter(|_| takes).filter_map(inode);
    let leave = || fds.iter().filter_map(|fd| here(log, *fd)).for_each(|here| naming::leaving(&here));
    log.engine.outside(Some(log.me()), known, shrinking, leave, call)
}

/// A directory was made, in one that the log does not know: if that was made lately itself, so was this one.
pub fn made_below(log: &Log, fd: BorrowedFd<'_>, name: &OsStr) {
    let is_made = |stat: rustix::fs::Stat| log.engine.was_made((stat.st_dev, stat.st_ino));
    if log.engine.has_directories() && fstat(fd).is_ok_and(is_made) {
        here::note_made(log, fd, name);
    }
}

/// Asks the daemon for a directory. It says no for good where the file system does not keep the order of names.
#[cold]
fn register(log: &Log, node: &Node) {
    let is_any =
        |path: &Path| policy::decide_directory(log.engine.shm(), path.as_os_str().as_bytes()).is_some();
    let is_wanted = !log.refused.has((node.dev, node.ino)) && node.name().is_some_and(|path| is_any(&path));
    if is_wanted
        && let Ok(open) = node.open(OFlags::RDONLY | OFlags::DIRECTORY)
        && log.daemon.register(&log.engine, open.as_fd(), false).refuses_directory()
    {
        log.refused.note((node.dev, node.ino));
    }
}

/// Makes all of a file that is synced for the first time a record. False: it is to be synced for real.
pub fn first_sync(log: &Log, node: &Node, fd: BorrowedFd<'_>) -> bool {
    if !log.engine.has_directories() || is_captured(log, node) {
        return false;
    }
    let Some((above, name)) = above(node) else { return false };
    let inode = fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
    taken(log, above.as_fd())
        .zip(inode.ok())
        .is_some_and(|(here, inode)| naming::capturing(&here, &name, inode))
}

/// The directory in which a node has its present name, by O_PATH, and that name.
pub fn above(node: &Node) -> Option<(OwnedFd, CString)> {
    let path = node.name()?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let above = rustix::fs::open(path.parent()?, flags, Mode::empty()).ok()?;
    Some((above, text(path.file_name()?)?))
}

/// A file that is not managed was synced for real: what the log has of it as a whole must not come back over that.
///
/// # Errors
/// Its directory cannot be synced.
pub fn settle(log: &Log, node: &Node) -> Result<(), Errno> {
    if !log.engine.has_directories() || !is_captured(log, node) {
        return Ok(());
    }
    let inode = (node.dev, node.ino);
    // Whoever captures it, or moves it, has the directory until that is over: the daemon waits for it.
    while let Some(directory) = log.engine.directory_of_content(inode) {
        if log.daemon.sync_file(directory) != Synced::Done {
            return Err(Errno::IO);
        }
    }
    Ok(())
}

/// Runs a change of the size of a file that the log has no record of, by [`naming::resizing`].
///
/// # Errors
/// Its.
pub fn resizing(
    log: &Log,
    node: &Node,
    fd: BorrowedFd<'_>,
    call: impl FnOnce() -> Result<(), Errno>,
) -> Result<(), Errno> {
    if !log.engine.has_directories() {
        return call();
    }
    let size = || fstat(fd).map(|stat| stat.st_size as u64);
    let is_any_programs = || {
        above(node)
            .is_some_and(|(above, _)| here(log, above.as_fd()).is_some_and(|here| here.preset == Preset::Any))
    };
    naming::resizing(size, call, is_any_programs, || {
        log.syncing(node, || rustix::fs::fsync(fd)).and_then(|()| settle(log, node))
    })
}

fn is_captured(log: &Log, node: &Node) -> bool {
    log.engine.directory_of_content((node.dev, node.ino)).is_some()
}
