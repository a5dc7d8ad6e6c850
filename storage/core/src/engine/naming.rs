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

mod directory;
mod moving;

use core::ffi::CStr;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

use super::names::Turn;
use crate::format::{Attributes, NameChange};
pub use directory::{Directory, Kind, Known};
pub use moving::{How, moving_across, moving_within};

/// Most bytes of a file that becomes a record as a whole: a larger file is on the disk just as soon.
pub const LARGEST: usize = 128 << 10;

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
    capturing_by(here, |turn| captures(here, turn, name, inode) == Some(true))
}

/// The same for a front that reads the file itself: `capture` makes the record in this turn, if it can.
pub fn capturing_by<'h, D: Directory>(here: &'h D, capture: impl FnOnce(&Turn<'h, D>) -> bool) -> bool {
    let turn = enter(here);
    let is_captured = turn.is_in_log() && capture(&turn);
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

/// A file has lost a name, if `is_done`.
fn has_lost<D: Directory>(turn: &Turn<'_, D>, victim: Option<Known>, is_done: bool) {
    if let Some(victim) = victim.filter(|_| is_done) {
        turn.lost(victim.inode, victim.links as u32);
    }
}
