//! New directories that enter the log before the disk has them.
//!
//! Which may, and what is in them. Not handled here: what their records are ([`Turn::takes_in`]), and what a directory must be to
//! be in the log at all ([`directories`]).

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use seawall_core::format::{Attributes, Handle};
use seawall_core::naming::{Entry, New, has_attributes};
use seawall_core::{FileRef, Turn, policy};

use crate::directories::{self, Admissible, Named};
use crate::parts::files::Managed;
use crate::state::Daemon;
use crate::unmanaged::{BYPASS, LATER, Unmanaged};

/// A directory with more names is synced.
const MOST: usize = 64;
/// How many new directories may be above it that are not in the log either.
const DEEPEST: u32 = 16;

/// Takes the directory behind `fd` into the log.
pub(crate) fn register(daemon: &Daemon, fd: &OwnedFd) -> Result<FileRef, Unmanaged> {
    directories::in_turn(daemon, fd, |path, root| register_in_turn(daemon, fd, path, root, DEEPEST))
}

fn register_in_turn(
    daemon: &Daemon,
    fd: &OwnedFd,
    path: PathBuf,
    root: u32,
    deepest: u32,
) -> Result<FileRef, Unmanaged> {
    let stat = fstat(fd).map_err(|_| BYPASS)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(BYPASS);
    }
    if let Some(known) = daemon.engine.find(stat.st_dev, stat.st_ino) {
        return Ok(known);
    }
    let above = above(daemon, &path, root, deepest)?;
    let newcomer = directories::admissible(daemon, fd, &stat, path, root)?;
    // Nobody is waited for: whoever changes names there may wait for this. And nobody moves it meanwhile.
    let turn = daemon.engine.try_enter_directory(daemon.me(), above.reference, above.as_ref());
    let turn = turn.filter(Turn::is_in_log).ok_or(LATER)?;
    let entered = enter(daemon, newcomer, (&turn, &above), &stat);
    turn.finish();
    entered
}

/// The directory above it, if the log knows that one, or may know it now.
fn above(daemon: &Daemon, path: &Path, root: u32, deepest: u32) -> Result<Arc<Managed>, Unmanaged> {
    let above = path.parent().ok_or(BYPASS)?;
    if policy::decide_directory(daemon.engine.shm(), above.as_os_str().as_bytes()) != Some(root) {
        return Err(BYPASS);
    }
    let known = || daemon.directory(above);
    if let Some(known) = known() {
        return Ok(known);
    }
    let deepest = deepest.checked_sub(1).ok_or(LATER)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(above, flags, Mode::empty()).map_err(|_| LATER)?;
    register_in_turn(daemon, &fd, above.to_owned(), root, deepest)?;
    known().ok_or(LATER)
}

/// Takes it into the log, with its name as it is now.
fn enter(
    daemon: &Daemon,
    newcomer: Admissible<'_>,
    (turn, above): (&Turn<'_, Managed>, &Managed),
    stat: &Stat,
) -> Result<FileRef, Unmanaged> {
    let name = newcomer.path.file_name().ok_or(BYPASS)?.to_owned();
    let (fd, preset, inode) = (newcomer.fd, newcomer.entry.preset, (stat.st_dev, stat.st_ino));
    let is_kept = |name: &[u8]| policy::keeps_name(preset, name);
    let found = statat(&above.file, &name, AtFlags::SYMLINK_NOFOLLOW);
    let is_there = found.is_ok_and(|found| (found.st_dev, found.st_ino) == inode);
    if !is_there || !is_kept(name.as_bytes()) || has_attributes(fd.as_fd()) {
        return Err(LATER);
    }
    let file = newcomer.handle().ok_or(BYPASS)?;
    let new = New { file, attributes: Attributes::of(stat), inode };
    let kept = || {
        let entries = entries(fd, stat.st_uid)?;
        Some(entries.into_iter().filter(|entry| is_kept(&entry.name)).collect())
    };
    let entered = turn
        .takes_in(&new, &kept, |record| directories::enter(daemon, newcomer, Some(Named { above, record })));
    entered.ok_or(LATER)?
}

/// By no more than a path.
const LOOKING: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Everything in it. `None`: that is too much, or something that no record can make again.
fn entries(directory: impl AsFd, owner: u32) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in rustix::fs::Dir::read_from(&directory).ok()? {
        let entry = entry.ok()?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if entries.len() == MOST {
            return None;
        }
        entries.push(entry_at(directory.as_fd(), name, owner)?);
    }
    Some(entries)
}

fn entry_at(directory: BorrowedFd<'_>, name: &OsStr, owner: u32) -> Option<Entry> {
    let looked_at = openat(directory, name, LOOKING, Mode::empty()).ok()?;
    let stat = fstat(&looked_at).ok().filter(|stat| stat.st_uid == owner)?;
    let (kind, bytes) = seawall_media::handle(&looked_at).ok()?;
    let file = Handle::new(kind, &bytes)?;
    let mut attributes = Attributes::of(&stat);
    let target = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink == 1 => None,
        FileType::Directory => {
            attributes = attributes.as_directory();
            None
        }
        FileType::Symlink => Some(readlinkat(&looked_at, "", Vec::new()).ok()?.into_bytes()),
        _ => return None,
    };
    Some(Entry { name: name.as_bytes().to_vec(), file, attributes, target })
}
