//! rename(2), within a directory and between two of them.

use core::ffi::CStr;

use rustix::io::Errno;

use super::directory::{Directory, Kind, Known};
use super::leaving;
use super::turns::{beside, carry, enter, enter_both, has_lost, knows_names, leads_to};
use crate::engine::Turn;
use crate::format::{Across, Handle, NameChange};

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

/// Directories that a rename may move or replace, and that may be in the log themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Themselves {
    /// It moves a file, and can replace nothing but a file.
    Neither,
    /// What it would replace [leaves](leaving) the log first. What it moves stays, and [`moving_within`] gets it.
    Stays,
    /// Both leave the log first.
    Leave,
}

impl Themselves {
    /// Of a rename in this way of what is `moving`, as far as anybody saw it; `is_within` a directory in the log.
    pub fn of(moving: Option<Kind>, is_within: bool, how: How) -> Self {
        match (moving, how) {
            (Some(Kind::File | Kind::Symlink), How::Plain | How::Other) => Self::Neither,
            (_, How::Plain) if is_within => Self::Stays,
            _ => Self::Leave,
        }
    }
}

/// rename(2) within a directory, of a file that was `source` since the directory was found. `itself`: what moves, if that
/// is a directory in the log too; its own names stay there. The call learns whether the log has a record that the file
/// which had the new name is gone.
///
/// # Errors
/// As for [`making`](super::making).
pub fn moving_within<D: Directory, R>(
    here: &D,
    ((name, source), to_name): ((&CStr, Option<Known>), &CStr),
    itself: Option<&D>,
    how: How,
    call: impl FnOnce(bool) -> Result<R, Errno>,
) -> Result<R, Errno> {
    if !here.keeps(name) && !here.keeps(to_name) {
        itself.into_iter().for_each(leaving);
        return beside(here, || call(false));
    }
    let before = (source, here.at(to_name));
    // Its change time is about to change.
    let (turn, own) = match itself {
        Some(itself) => {
            let (turn, own) = enter_both(here, itself);
            (turn, Some(own))
        }
        None => (enter(here), None),
    };
    // Nobody need have waited: another thread may have changed these names between the look and the entry.
    let (source, victim) =
        if turn.still_stands(here.stand()) { before } else { (here.at(name), here.at(to_name)) };
    let (bytes, to) = (name.to_bytes(), to_name.to_bytes());
    let over = victim.and_then(|victim| victim.replaced());
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
                own.iter().for_each(Turn::leave);
            }
            false
        }
    };
    let done = turn.allowed().and_then(|()| call(is_logged && how == How::Plain));
    if let Some(file) = moved.filter(|_| done.is_err() && is_logged) {
        if leads_to(here, name, file) {
            // By a single record: with one for each name, a power cut between them would leave the file at both, and
            // the one that it was to replace at none.
            let (exchanged, across) = (over.is_some(), Across::No);
            turn.log(&NameChange::Moved { name: to, to: bytes, file, over, exchanged, across });
        } else {
            turn.leave();
        }
    }
    has_lost(&turn, victim, done.is_ok() && moved.is_some() && how == How::Plain);
    own.into_iter().for_each(Turn::finish);
    turn.finish();
    done
}

/// rename(2) from one directory to another. They are entered in the order of their slots. The call learns the same as
/// within one directory.
///
/// # Errors
/// As for [`making`](super::making).
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
    let (source, target) = enter_both(from, to);
    let (file, victim) = (from.at(name), to.at(to_name));
    let is_kept = from.keeps(name) && to.keeps(to_name);
    let is_known = source.is_in_log() && target.is_in_log() && how == How::Plain && is_kept;
    let file = file.filter(|file| is_known && file.kind != Kind::Directory && file.links == 1);
    let (names, over) = ((name.to_bytes(), to_name.to_bytes()), victim.and_then(|victim| victim.replaced()));
    let logged = moved(file, (to, victim), how).zip(file).filter(|(moved, file)| {
        carry((from, &source, name), (to, &target), file) && source.log_move(&target, names, *moved, over)
    });
    let is_logged = logged.is_some();
    if !is_logged {
        source.leave();
        target.leave();
    }
    let done = source.allowed().and_then(|()| target.allowed()).and_then(|()| call(is_logged));
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

/// The file that moves, if a record can express that and what becomes of the file that was there. No record says that a
/// directory is gone.
fn moved<D: Directory>(source: Option<Known>, (to, victim): (&D, Option<Known>), how: How) -> Option<Handle> {
    let source = source?;
    if source.kind == Kind::Directory {
        return source.handle.filter(|_| victim.is_none() && how == How::Plain);
    }
    let file = source.entry()?;
    let over = victim.and_then(|victim| victim.entry());
    let is_victim_known = match (victim, how) {
        (_, How::Other) | (None, How::Exchange) => false,
        (Some(_), How::Exchange) => over.is_some(),
        (Some(victim), How::Plain) => over.is_some() && knows_names(to, &victim),
        (None, How::Plain) => true,
    };
    (is_victim_known && over != Some(file)).then_some(file)
}
