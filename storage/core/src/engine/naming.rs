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

mod capturing;
mod directory;
mod emptied;
mod linking;
mod making;
mod moving;
mod turns;

use core::ffi::CStr;

use rustix::io::Errno;

use super::names::Turn;
#[cfg(feature = "std")]
pub use super::names::{Entry, New};
use crate::format::{NameChange, Replaced};
pub use capturing::{LARGEST, Settling, capturing, capturing_by, has_attributes, settling};
pub use directory::{Directory, Holds, Kind, Known, lies_within};
use emptied::{Emptied, Going};
pub use linking::{linking_across, linking_within};
pub use making::{Making, has_made, making, making_new};
pub use moving::{How, moving_across, moving_within};
pub use turns::{beside, enter, leaving};
use turns::{has_lost, knows_names, leads_to, refused};

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

/// A call that no record can express.
///
/// # Errors
/// As for [`making`](making()).
pub fn other<D: Directory, R>(here: &D, call: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
    let turn = enter(here);
    turn.leave();
    let done = turn.allowed().and_then(|()| call());
    turn.finish();
    done
}

/// unlink(2). The call learns whether the log has a record that the file is gone.
///
/// # Errors
/// As for [`making`](making()).
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
/// As for [`making`](making()).
pub fn removing_directory<D: Directory, R>(
    here: &D,
    name: &CStr,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    if !here.keeps(name) {
        here.itself(name).iter().for_each(leaving);
        return beside(here, call);
    }
    let enter = || (enter(here), Some(Going { here, name, from: here }));
    emptied::alone(emptied::ahead(here, name), enter, Turn::finish, |turn, emptied| match emptied {
        Emptied::No => refused(turn, call),
        emptied => removes(here, turn, name, |victim| emptied.replaced(victim), |_| call()),
    })
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
