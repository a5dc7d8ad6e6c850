//! Calls that change names in directories that are in the log, as every front makes them.
//!
//! | call | in such a directory |
//! |---|---|
//! | creating a file or a directory; link within the directory | a record, made after the kernel's call and before it returns |
//! | unlink; rename of a file within the directory, exchange of two | a record, made before the kernel's call |
//! | rename of a file to another one of them | a record in each, made before the kernel's call |
//! | rmdir, symlink, mknod, rename of or over a directory, a link or rename to or from a directory that is not in the log, the removal of a name of a file whose other names the log does not know | the directory leaves the log first; its next fsync is real |
//!
//! What a front brings: the directory ([`Directory`]), and the kernel's call. How a path leads to a directory is the
//! front's own affair.

use core::ffi::CStr;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

use super::attach::Engine;
use super::names::{Place, Turn};
use crate::Owner;
use crate::file::{FileRef, Stand};
use crate::format::{Across, Attributes, Handle, NameChange};

/// Most bytes of a file that becomes a record as a whole: a larger file is on the disk just as soon.
pub const LARGEST: usize = 128 << 10;

/// A directory in the log, as a front's call reaches it.
pub trait Directory: Place + Sized {
    /// The log.
    fn engine(&self) -> &Engine;

    /// The thread that calls.
    fn who(&self) -> Owner;

    /// Its slot.
    fn reference(&self) -> FileRef;

    /// Its st_dev and st_ino.
    fn inode(&self) -> (u64, u64);

    /// Its user: a file of another user is not made again.
    fn uid(&self) -> u32;

    /// True if the name must survive a power cut; otherwise its changes are not logged.
    fn keeps(&self, name: &CStr) -> bool;

    /// How its changes stood when it was found ([`Engine::stand`]).
    fn stand(&self) -> Option<Stand>;

    /// What is at a name, if anything is. Links are not followed.
    fn at(&self, name: &CStr) -> Option<Known>;

    /// Calls `op` with the whole content of the small file at `name`, which was `known` a moment ago. `None`: it is
    /// another file by now, is too large, or has something that no record has room for.
    fn with_content<R>(&self, name: &CStr, known: &Known, op: impl FnOnce(&[u8]) -> R) -> Option<R>;
}

/// What is at a name.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// A regular file, a directory, or something else.
    pub kind: Kind,
    /// Its st_dev and st_ino.
    pub inode: (u64, u64),
    /// How many names it has.
    pub links: u64,
    /// The attributes for a copy that is made again.
    pub attributes: Attributes,
    /// Its identity, if a record can name it.
    pub handle: Option<Handle>,
}

/// What kind of thing has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else.
    Other,
}

/// How a file moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It gets the name, whichever file had it (or none may, RENAME_NOREPLACE).
    Plain,
    /// Two files get each other's name (RENAME_EXCHANGE).
    Exchange,
    /// In a way that no record expresses.
    Other,
}

impl Known {
    /// Its identity, if it is a regular file that a record can name.
    fn file(&self) -> Option<Handle> {
        self.handle.filter(|_| self.kind == Kind::File)
    }
}

/// Nobody else changes a directory's names until the turn is finished.
pub fn enter<D: Directory>(here: &D) -> Turn<'_, D> {
    here.engine().enter_directory(here.who(), here.reference(), here)
}

/// Runs a call that may make a file. The call learns whether it will.
pub fn making<D: Directory, R>(here: &D, name: &CStr, call: impl FnOnce(bool) -> R) -> R {
    if !here.keeps(name) {
        return beside(here, || call(false));
    }
    let turn = enter(here);
    if here.at(name).is_some() {
        // If it is removed meanwhile, a file made in its place shows in the directory's change time.
        turn.finish();
        return call(false);
    }
    let done = call(true);
    has_made(here, &turn, name);
    turn.finish();
    done
}

/// Logs what was just made at `name`, if anything was.
pub fn has_made<D: Directory>(here: &D, turn: &Turn<'_, D>, name: &CStr) {
    let Some(made) = here.at(name).filter(|_| here.keeps(name)) else { return };
    let is_own = made.attributes.uid == here.uid();
    let attributes = match made.kind {
        Kind::File if made.links == 1 => made.attributes,
        Kind::Directory => {
            Attributes { mode: made.attributes.mode | Attributes::DIRECTORY, ..made.attributes }
        }
        _ => return turn.leave(),
    };
    match made.handle.filter(|_| is_own) {
        Some(file) => drop(turn.log(&NameChange::Made { name: name.to_bytes(), file, attributes })),
        None => turn.leave(),
    }
}

/// Runs a change of a file's size for which the log has no record. If the file is in a logged directory of the preset
/// `any`, the change is durable when this returns.
///
/// A file system with a journal makes such a change durable with the next sync of any file, and programs rely on that:
/// RocksDB cuts a table that it wrote through a mapping after syncing it, and then syncs the file that says how long
/// the table is. Here that sync may be a record alone. Presets of programs that sync what they cut do not need this.
///
/// `size` asks the kernel for the file's size, `is_any_programs` is asked about its directory, `sync` makes a real sync
/// and tells the log.
///
/// # Errors
/// The call's error, or the disk's.
pub fn resizing(
    size: impl Fn() -> Result<u64, Errno>,
    call: impl FnOnce() -> Result<(), Errno>,
    is_any_programs: impl FnOnce() -> bool,
    sync: impl FnOnce() -> Result<(), Errno>,
) -> Result<(), Errno> {
    let before = size();
    call()?;
    let is_same = before.is_ok() && before == size();
    if is_same || !is_any_programs() { Ok(()) } else { sync() }
}

/// mkdir(2).
///
/// # Errors
/// The call's error, here and below.
pub fn making_directory<D: Directory, R>(
    here: &D,
    name: &CStr,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    let turn = enter(here);
    let done = call();
    if done.is_ok() {
        has_made(here, &turn, name);
    }
    turn.finish();
    done
}

/// A call that no record can express.
pub fn other<D: Directory, R>(here: &D, call: impl FnOnce() -> R) -> R {
    let turn = enter(here);
    turn.leave();
    let done = call();
    turn.finish();
    done
}

/// The directory is about to be removed or moved: it leaves the log.
pub fn leaving<D: Directory>(here: &D) {
    let turn = enter(here);
    turn.leave();
    turn.finish_outside();
}

/// Runs a call that changes names of no directory in the log, while nobody removes names here.
pub fn beside<D: Directory, R>(here: &D, call: impl FnOnce() -> R) -> R {
    let turn = enter(here);
    let done = call();
    turn.finish();
    done
}

/// unlink(2). The call learns whether the log has a record that the file is gone.
///
/// # Errors
/// The call's error.
pub fn removing<D: Directory, R>(
    here: &D,
    name: &CStr,
    call: impl FnOnce(bool) -> Result<R, Errno>,
) -> Result<R, Errno> {
    if !here.keeps(name) {
        return beside(here, || call(false));
    }
    let turn = enter(here);
    let (victim, bytes) = (here.at(name), name.to_bytes());
    let gone = victim.filter(|victim| knows_names(here, victim)).and_then(|victim| victim.file());
    let is_logged = match gone {
        Some(file) => turn.log(&NameChange::Gone { name: bytes, file }),
        // Nothing to remove, or something that no record can express.
        None => {
            if victim.is_some() {
                turn.leave();
            }
            false
        }
    };
    let done = call(is_logged);
    if let Some(file) = gone.filter(|_| done.is_err() && is_logged) {
        // Should this thread have lost the directory meanwhile, the record is retired.
        turn.log(&NameChange::Is { name: bytes, file: Some(file) });
    }
    has_lost(&turn, victim, done.is_ok());
    turn.finish();
    done
}

/// rename(2) within a directory, of a file that was `source` since the directory was found. The call learns whether the
/// log has a record that the file which had the new name is gone.
///
/// # Errors
/// The call's error.
pub fn moving_within<D: Directory, R>(
    here: &D,
    ((name, source), to_name): ((&CStr, Option<Known>), &CStr),
    how: How,
    call: impl FnOnce(bool) -> Result<R, Errno>,
) -> Result<R, Errno> {
    if !here.keeps(name) && !here.keeps(to_name) {
        return beside(here, || call(false));
    }
    let before = (source, here.at(to_name));
    let turn = enter(here);
    // Nobody need have waited: another thread may have changed these names between the look and the entry.
    let (source, victim) =
        if turn.still_stands(here.stand()) { before } else { (here.at(name), here.at(to_name)) };
    let (bytes, to) = (name.to_bytes(), to_name.to_bytes());
    let over = victim.and_then(|victim| victim.file());
    let is_kept = here.keeps(name) && here.keeps(to_name);
    let moved = moved(source, (here, victim), how).filter(|_| is_kept);
    let is_logged = match moved {
        Some(file) => {
            let (name, exchanged, across) = (bytes, how == How::Exchange, Across::No);
            turn.log(&NameChange::Moved { name, to, file, over, exchanged, across })
        }
        None => {
            // Otherwise there is nothing that could move.
            if source.is_some() {
                turn.leave();
            }
            false
        }
    };
    let done = call(is_logged && how == How::Plain);
    if let Some(file) = moved.filter(|_| done.is_err() && is_logged) {
        // By a single record: with one for each name, a power cut between them would leave the file at both, and the
        // one that it was to replace at none.
        let (exchanged, across) = (over.is_some(), Across::No);
        turn.log(&NameChange::Moved { name: to, to: bytes, file, over, exchanged, across });
    }
    has_lost(&turn, victim, done.is_ok() && moved.is_some() && how == How::Plain);
    turn.finish();
    done
}

/// rename(2) from one directory to another. They are entered in the order of their slots. The call learns the same as
/// within one directory.
///
/// # Errors
/// The call's error.
pub fn moving_across<D: Directory, R>(
    (from, name): (&D, &CStr),
    (to, to_name): (&D, &CStr),
    how: How,
    call: impl FnOnce(bool) -> Result<R, Errno>,
) -> Result<R, Errno> {
    if from.inode().0 != to.inode().0 {
        // The kernel reports it.
        return call(false);
    }
    let (source, target) = if from.reference().slot < to.reference().slot {
        let source = enter(from);
        (source, enter(to))
    } else {
        let target = enter(to);
        (enter(from), target)
    };
    let (file, victim) = (from.at(name), to.at(to_name));
    let is_kept = from.keeps(name) && to.keeps(to_name);
    let is_known = source.is_in_log() && target.is_in_log() && how == How::Plain && is_kept;
    let file = file.filter(|file| is_known && file.links == 1);
    let (names, over) = ((name.to_bytes(), to_name.to_bytes()), victim.and_then(|victim| victim.file()));
    let logged = moved(file, (to, victim), how).zip(file).filter(|(moved, file)| {
        carry((from, &source, name), (to, &target), file) && source.log_move(&target, names, *moved, over)
    });
    let is_logged = logged.is_some();
    if !is_logged {
        source.leave();
        target.leave();
    }
    let done = call(is_logged);
    if let Some((moved, _)) = logged.filter(|_| done.is_err()) {
        source.take_back(&target, names, moved, over);
    } else if is_logged && !(source.is_in_log() && target.is_in_log()) {
        // One was taken over meanwhile, without the move: the other one's records do not vouch for it.
        source.leave();
        target.leave();
    }
    has_lost(&target, victim, done.is_ok() && is_logged);
    target.finish();
    source.finish();
    done
}

/// link(2) within a directory.
///
/// # Errors
/// The call's error.
pub fn linking_within<D: Directory, R>(
    here: &D,
    (name, to): (&CStr, &CStr),
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    let turn = enter(here);
    let there = here.at(name);
    let is_kept = here.keeps(name) && here.keeps(to);
    let source = there.filter(|source| is_kept && source.file().is_some() && knows_names(here, source));
    if source.is_none() && there.is_some() {
        turn.leave();
    }
    let done = call();
    if let Some(source) = source.filter(|_| done.is_ok() && turn.is_in_log())
        && let Some(file) = source.file()
        && turn.log(&NameChange::Linked { name: name.to_bytes(), to: to.to_bytes(), file })
    {
        turn.linked(source.inode);
    }
    turn.finish();
    done
}

/// The first sync of a small file, which has this inode and is at `name`: all of it becomes a record, durable when this
/// returns. False: the file needs a real sync.
pub fn capturing<D: Directory>(here: &D, name: &CStr, inode: (u64, u64)) -> bool {
    let turn = enter(here);
    let is_captured = turn.is_in_log() && captures(here, &turn, name, inode) == Some(true);
    turn.finish_durably() && is_captured
}

fn captures<D: Directory>(here: &D, turn: &Turn<'_, D>, name: &CStr, inode: (u64, u64)) -> Option<bool> {
    let known = here.at(name).filter(|known| known.inode == inode && known.links == 1)?;
    let file = known.file().filter(|_| known.attributes.uid == here.uid())?;
    turn.capture(inode, &file, |record| {
        let (bytes, attributes) = (name.to_bytes(), known.attributes);
        let content = |data: &[u8]| record(&NameChange::Content { name: bytes, file, attributes, data });
        here.with_content(name, &known, content).flatten()
    })
    .then_some(true)
}

/// True if a file has extended attributes, access control lists among them, that a copy made again would lack. Its
/// security label comes from its directory.
pub fn has_attributes(fd: BorrowedFd<'_>) -> bool {
    const LABEL: &[u8] = b"security.selinux\0";
    let mut names = [0; LABEL.len()];
    match rustix::fs::flistxattr(fd, &mut names[..]) {
        Ok(len) => len > 0 && names[..len] != *LABEL,
        Err(error) => error != Errno::OPNOTSUPP,
    }
}

/// True if the log knows every name of this file, which has one here: then the removal of one of them may be a record.
/// An unknown name may not be on the disk yet, and the file would be lost with this one.
fn knows_names<D: Directory>(here: &D, known: &Known) -> bool {
    let captured = || here.engine().captured(known.inode);
    known.links <= 1
        || captured().is_some_and(|captured| {
            captured.directory == here.reference() && u64::from(captured.links) == known.links
        })
}

/// The file that moves, if a record can express that and what becomes of the file that was there.
fn moved<D: Directory>(source: Option<Known>, (to, victim): (&D, Option<Known>), how: How) -> Option<Handle> {
    let file = source?.file()?;
    let over = victim.and_then(|victim| victim.file());
    let is_victim_known = match (victim, how) {
        (_, How::Other) | (None, How::Exchange) => false,
        (Some(_), How::Exchange) => over.is_some(),
        (Some(victim), How::Plain) => over.is_some() && knows_names(to, &victim),
        (None, How::Plain) => true,
    };
    (is_victim_known && over != Some(file)).then_some(file)
}

/// Moves the whole content of a file from one directory's records to those of another, to which the file is about to
/// move: a sync of the other directory's names makes what they lead to durable too. False: the content stays, and so
/// must the file.
fn carry<D: Directory>(
    (from, turn, name): (&D, &Turn<'_, D>, &CStr),
    (to, target): (&D, &Turn<'_, D>),
    known: &Known,
) -> bool {
    let Some(captured) = from.engine().captured(known.inode) else { return true };
    let Some(file) = known.file() else { return false };
    if captured.directory != from.reference() || captured.links != 1 || known.attributes.uid != to.uid() {
        return false;
    }
    let attributes = known.attributes;
    let is_carried = target.capture(known.inode, &file, |record| {
        let content = |data: &[u8]| record(&NameChange::Holds { file, attributes, data });
        from.with_content(name, known, content).flatten()
    });
    let held = from.engine().captured(known.inode);
    let held = held.filter(|now| is_carried && now.directory == to.reference());
    held.is_some_and(|held| {
        let held = Some((target.elsewhere(), held.lsn));
        turn.log(&NameChange::Settled { file, held })
    })
}

/// A file has lost a name, if `is_done`.
fn has_lost<D: Directory>(turn: &Turn<'_, D>, victim: Option<Known>, is_done: bool) {
    if let Some(victim) = victim.filter(|_| is_done) {
        turn.lost(victim.inode, victim.links as u32);
    }
}
