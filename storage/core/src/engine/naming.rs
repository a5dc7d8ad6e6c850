//! Calls that change names in directories that are in the log, as every front makes them.
//!
//! | call | in such a directory |
//! |---|---|
//! | creating a file, a directory or a symbolic link; link within the directory | a record, made after the kernel's call and before it returns |
//! | link to another one of them | a record in each, made after the kernel's call and before it returns |
//! | unlink, rmdir of a directory in the log; rename, also over a file or such a directory, and exchange within the directory | a record, made before the kernel's call |
//! | rename to another one of them, likewise | a record in each, made before the kernel's call |
//! | mknod, rmdir of a directory that the log does not know, or a rename over one, a link or rename to or from a directory that is not in the log, an exchange with one in another directory, the removal of a name of a file whose other names the log does not know | the directory leaves the log first; its next fsync is real |
//!
//! What a front brings: the directory ([`Directory`]), and the kernel's call. How a path leads to a directory is the
//! front's own affair.

mod directory;
mod emptied;
mod linking;
mod moving;
mod turns;

use core::ffi::CStr;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

use super::Engine;
use super::names::Turn;
#[cfg(feature = "std")]
pub use super::names::{Entry, New};
use crate::file::FileRef;
use crate::file::captured::Capture;
use crate::format::{Attributes, NameChange, Replaced};
pub use directory::{Directory, Holds, Kind, Known, lies_within};
use emptied::Emptied;
pub use linking::{linking_across, linking_within};
pub use moving::{How, moving_across, moving_within};
pub use turns::{beside, enter};
use turns::{has_lost, knows_names, leads_to, refused};

/// Most bytes of a file that becomes a record as a whole: a larger file is on the disk just as soon.
pub const LARGEST: usize = 128 << 10;

/// What a call that may make a file is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Making {
    /// It makes one: there is none.
    New,
    /// It opens the one that is there, and makes none, if it can help it: who has removed it meanwhile has a record of that, and
    /// this one would have none.
    Opens,
    /// It does whatever the kernel does: something else is there, or the log does not know of it.
    Other,
}

/// So often a file is looked for that others remove and make.
const LOOKS: usize = 100;

/// Runs a call that may make a file. The call learns what it is to do, and is made again if what it was to open is gone.
///
/// # Errors
/// The call's error, or [EIO](Turn::allowed), here and below.
pub fn making<D: Directory, R>(
    here: &D,
    name: &CStr,
    mut call: impl FnMut(Making) -> Result<R, Errno>,
) -> Result<R, Errno> {
    if !here.keeps(name) {
        return beside(here, || call(Making::Other));
    }
    for _ in 0..LOOKS {
        let turn = enter(here);
        let Some(found) = here.at(name) else {
            let done = turn.allowed().and_then(|()| call(Making::New));
            has_made(here, &turn, name);
            turn.finish();
            return done;
        };
        let stand = turn.stand();
        // Nothing may be held: an open may wait for the daemon, which waits for the directory.
        turn.finish();
        let is_plain = found.kind == Kind::File && found.attributes.uid == here.uid();
        let done = call(if is_plain { Making::Opens } else { Making::Other });
        if is_plain && matches!(done, Err(Errno::NOENT)) {
            continue;
        }
        let is_another = || here.at(name).and_then(|now| now.handle) != found.handle;
        if here.engine().stand(here.reference()) != stand && is_another() {
            // This call may have made one that the log does not know.
            leaving(here);
        }
        return done;
    }
    Err(Errno::NOENT)
}

/// Logs what was just made at `name`, if anything was.
pub fn has_made<D: Directory>(here: &D, turn: &Turn<'_, D>, name: &CStr) {
    let Some(made) = here.at(name).filter(|_| here.keeps(name)) else { return };
    let is_own = made.attributes.uid == here.uid();
    let Some(file) = made.handle.filter(|_| is_own && !made.has_others()) else { return turn.leave() };
    let (bytes, mut attributes) = (name.to_bytes(), made.attributes);
    if made.kind == Kind::Directory {
        here.engine().directory_is_made(made.inode, &file, &attributes);
        attributes.mode |= Attributes::DIRECTORY;
    }
    let is_logged = match made.kind {
        Kind::File | Kind::Directory => Some(turn.log(&NameChange::Made { name: bytes, file, attributes })),
        Kind::Symlink => here.with_target(name, |target| {
            turn.log(&NameChange::Symlink { name: bytes, file, attributes, target })
        }),
        Kind::Other => None,
    };
    if is_logged.is_none() {
        turn.leave();
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

/// mkdir(2), symlink(2).
///
/// # Errors
/// As for [`making`].
pub fn making_new<D: Directory, R>(
    here: &D,
    name: &CStr,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    let turn = enter(here);
    let done = turn.allowed().and_then(|()| call());
    if done.is_ok() {
        has_made(here, &turn, name);
    }
    turn.finish();
    done
}

/// A call that no record can express.
///
/// # Errors
/// As for [`making`].
pub fn other<D: Directory, R>(here: &D, call: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
    let turn = enter(here);
    turn.leave();
    let done = turn.allowed().and_then(|()| call());
    turn.finish();
    done
}

/// The directory is about to be removed or moved: it leaves the log.
pub fn leaving<D: Directory>(here: &D) {
    let turn = enter(here);
    turn.leave();
    turn.finish_outside();
}

/// unlink(2). The call learns whether the log has a record that the file is gone.
///
/// # Errors
/// As for [`making`].
pub fn removing<D: Directory, R>(
    here: &D,
    name: &CStr,
    call: impl FnOnce(bool) -> Result<R, Errno>,
) -> Result<R, Errno> {
    if !here.keeps(name) {
        return beside(here, || call(false));
    }
    let turn = enter(here);
    let is_known = |victim: &Known| victim.kind != Kind::Directory && knows_names(here, victim);
    removes(here, turn, name, |victim| victim.replaced().filter(|_| is_known(victim)), call)
}

/// rmdir(2).
///
/// # Errors
/// As for [`making`].
pub fn removing_directory<D: Directory, R>(
    here: &D,
    name: &CStr,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    if !here.keeps(name) {
        return beside(here, call);
    }
    let ahead = emptied::ahead(here, name);
    let turn = enter(here);
    match emptied::now(here, name, ahead) {
        Emptied::No => refused(turn, call),
        emptied => removes(here, turn, name, |victim| emptied.replaced(victim), |_| call()),
    }
}

/// A name goes, by a record if `gone` says what of.
fn removes<D: Directory, R>(
    here: &D,
    turn: Turn<'_, D>,
    name: &CStr,
    gone: impl FnOnce(&Known) -> Option<Replaced>,
    call: impl FnOnce(bool) -> Result<R, Errno>,
) -> Result<R, Errno> {
    let (victim, bytes) = (here.at(name), name.to_bytes());
    let gone = victim.as_ref().and_then(gone);
    let is_logged = match gone {
        Some(Replaced { file, has_others }) => turn.log(&NameChange::Gone { name: bytes, file, has_others }),
        // Nothing to remove, or something that no record can express.
        None => {
            if victim.is_some() {
                turn.leave();
            }
            false
        }
    };
    let done = turn.allowed().and_then(|()| call(is_logged));
    if let Some(Replaced { file, .. }) = gone.filter(|_| done.is_err() && is_logged) {
        if leads_to(here, name, file) {
            // Should this thread have lost the directory meanwhile, the record is retired.
            turn.log(&NameChange::Is { name: bytes, file: Some(file) });
        } else {
            turn.leave();
        }
    }
    has_lost(&turn, victim, done.is_ok());
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

/// What became of a file that was synced for real, and of what the log has of it as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settling {
    /// Nothing of that comes back.
    Done,
    /// It has moved: it is to be looked for again.
    Again,
    /// This directory has it, or may be about to.
    Elsewhere(FileRef),
    /// The disk refused the file or its directory.
    Refused,
}

/// The file with this inode has been synced for real, by a sync that began when the next record was to get the LSN `since`: what
/// the log has of it as a whole must not come back over that. `here`: where its name was found, if that is in the log. `again`
/// syncs it once more.
pub fn settling<D: Directory>(
    engine: &Engine,
    here: Option<(&D, &CStr)>,
    (inode, since): ((u64, u64), u64),
    again: impl FnOnce() -> Result<(), Errno>,
) -> Settling {
    let Some((here, name)) = here else {
        return match engine.capture_of(inode) {
            Capture::No => Settling::Done,
            Capture::UnderWay(slot) => {
                engine.slot(slot).map_or(Settling::Again, |slot| Settling::Elsewhere(slot.file()))
            }
            Capture::Whole(captured) => Settling::Elsewhere(captured.directory),
        };
    };
    // Whoever captures it, or moves what was captured, has the directory that it is in until that is over.
    let turn = enter(here);
    let is_here = here.at(name).is_some_and(|known| known.inode == inode);
    let settling = match engine.capture_of(inode) {
        Capture::Whole(captured) if captured.directory == here.reference() => {
            match turn.settle(&captured, inode, since, again) {
                true => Settling::Done,
                false if engine.captured(inode).is_some_and(|now| now.directory != captured.directory) => {
                    Settling::Again
                }
                false => Settling::Refused,
            }
        }
        Capture::Whole(captured) => Settling::Elsewhere(captured.directory),
        // Another file is captured.
        Capture::UnderWay(_) if is_here => Settling::Done,
        Capture::UnderWay(_) => Settling::Again,
        Capture::No => Settling::Done,
    };
    turn.finish();
    settling
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
