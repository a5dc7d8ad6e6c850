//! rename(2), within a directory and between two of them.

use core::ffi::CStr;

use rustix::io::Errno;

use super::directory::{Directory, Kind, Known};
use super::emptied::{self, Emptied, Going};
use super::turns::{
    beside, carry, enter, enter_both, has_lost, knows_names, leads_to, leaving, refused, try_enter,
};
use crate::engine::Turn;
use crate::format::{Across, Handle, NameChange, Replaced};

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

/// rename(2) within a directory, of a file that was `source` since the directory was found. The call learns whether the log
/// has a record that the file which had the new name is gone.
///
/// # Errors
/// As for [`making`](super::making()).
pub fn moving_within<D: Directory, R>(
    here: &D,
    ((name, source), to_name): ((&CStr, Option<Known>), &CStr),
    how: How,
    call: impl FnOnce(bool) -> Result<R, Errno>,
) -> Result<R, Errno> {
    if !here.keeps(name) && !here.keeps(to_name) {
        [name, to_name].iter().filter_map(|name| here.itself(name)).for_each(|itself| leaving(&itself));
        return beside(here, || call(false));
    }
    let before = (source, here.at(to_name));
    let ahead = ahead(source, (here, to_name, before.1), how);
    let enter = || {
        let turn = enter(here);
        // Nobody need have waited: another thread may have changed these names between the look and the entry.
        let (source, victim) =
            if turn.still_stands(here.stand()) { before } else { (here.at(name), here.at(to_name)) };
        let goes = is_over_directory(source, victim, how);
        ((turn, source, victim), goes.then_some(Going { here, name: to_name, from: here }))
    };
    emptied::alone(
        ahead,
        enter,
        |(turn, ..)| turn.finish(),
        |(turn, source, victim), emptied| {
            let over = over(source, (here, victim), how, emptied);
            match over {
                Over::Stays => refused(turn, || call(false)),
                over => moves((here, turn), (name, source), (to_name, victim, over), how, call),
            }
        },
    )
}

/// A name is about to get another one in the same directory, `over` what has that.
fn moves<D: Directory, R>(
    (here, turn): (&D, Turn<'_, D>),
    (name, source): (&CStr, Option<Known>),
    (to_name, victim, over): (&CStr, Option<Known>, Over),
    how: How,
    call: impl FnOnce(bool) -> Result<R, Errno>,
) -> Result<R, Errno> {
    let (bytes, to) = (name.to_bytes(), to_name.to_bytes());
    let own = own((here, name, source), (here, to_name, victim), how);
    let own = Own::enter(&own);
    let is_kept = here.keeps(name) && here.keeps(to_name);
    let moved = moved(source, &over).filter(|_| is_kept);
    let over = over.replaced();
    let is_logged = match moved {
        Some(file) => {
            let (name, exchanged, across) = (bytes, how == How::Exchange, Across::No);
            turn.log(&NameChange::Moved { name, to, file, over, exchanged, across })
        }
        None => {
            // Otherwise there is nothing that could move.
            if source.is_some() {
                turn.leave();
                own.leave();
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
    own.finish();
    turn.finish();
    done
}

/// rename(2) from one directory to another. They are entered in the order of their slots. The call learns the same as
/// within one directory.
///
/// # Errors
/// As for [`making`](super::making()).
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
    let ahead = match to.at(to_name) {
        victim @ Some(Known { kind: Kind::Directory, .. }) => {
            ahead(from.at(name), (to, to_name, victim), how)
        }
        _ => Emptied::Unknown,
    };
    let enter = || {
        let (source, target) = enter_both(from, to);
        let (known, victim) = (from.at(name), to.at(to_name));
        let goes = is_over_directory(known, victim, how);
        ((source, target, known, victim), goes.then_some(Going { here: to, name: to_name, from }))
    };
    let give_back = |(source, target, ..): (Turn<'_, D>, Turn<'_, D>, _, _)| {
        target.finish();
        source.finish();
    };
    emptied::alone(ahead, enter, give_back, |(source, target, known, victim), emptied| {
        let over = match known {
            // Nobody moves what is above the target into this one meanwhile, unless by no record.
            Some(Known { kind: Kind::Directory, inode, .. }) if to.is_within(inode) => Over::Stays,
            _ => over(known, (to, victim), how, emptied),
        };
        moves_across((from, source, (name, known)), (to, target, (to_name, victim, over)), how, call)
    })
}

/// A name is about to get another one in another directory, `over` what has that.
fn moves_across<D: Directory, R>(
    (from, source, (name, known)): (&D, Turn<'_, D>, (&CStr, Option<Known>)),
    (to, target, (to_name, victim, over)): (&D, Turn<'_, D>, (&CStr, Option<Known>, Over)),
    how: How,
    call: impl FnOnce(bool) -> Result<R, Errno>,
) -> Result<R, Errno> {
    let own = own((from, name, known), (to, to_name, victim), how);
    let own = Own::enter(&own);
    if over == Over::Stays {
        let done = refused(target, || call(false));
        if done.is_ok() {
            source.leave();
            own.leave();
        }
        own.finish();
        source.finish();
        return done;
    }
    let is_kept = from.keeps(name) && to.keeps(to_name) && own.is_whole;
    let is_known = source.is_in_log() && target.is_in_log() && how == How::Plain && is_kept;
    // Recovery looks for a directory, and for all in it, below its root.
    let is_below = || from.engine().root_of(from.reference()) == to.engine().root_of(to.reference());
    let may_move =
        |file: &Known| is_known && !file.has_others() && (file.kind != Kind::Directory || is_below());
    let file = known.filter(may_move);
    let moved = moved(file, &over).zip(file);
    let (names, over) = ((name.to_bytes(), to_name.to_bytes()), over.replaced());
    let logged = moved.filter(|(moved, file)| {
        carry((from, &source, name), (to, &target), file) && source.log_move(&target, names, *moved, over)
    });
    let is_logged = logged.is_some();
    if !is_logged {
        source.leave();
        target.leave();
        own.leave();
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
    own.finish();
    target.finish();
    source.finish();
    done
}

/// What has the new name, and what becomes of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// Nothing.
    Nothing,
    /// It loses the name, or changes places with what moves.
    Gives(Replaced),
    /// The kernel leaves it there, and refuses the rename.
    Stays,
    /// No record can say it.
    Unknown,
}

impl Over {
    fn replaced(self) -> Option<Replaced> {
        if let Self::Gives(replaced) = self { Some(replaced) } else { None }
    }
}

/// [`emptied::ahead`], if a directory would replace another one.
fn ahead<D: Directory>(source: Option<Known>, (to, to_name, victim): Target<'_, D>, how: How) -> Emptied {
    match is_over_directory(source, victim, how) {
        true => emptied::ahead(to, to_name),
        false => Emptied::Unknown,
    }
}

/// The directory of the new name, that name, and what has it.
type Target<'a, D> = (&'a D, &'a CStr, Option<Known>);

/// True if a directory would replace another one.
fn is_over_directory(source: Option<Known>, victim: Option<Known>, how: How) -> bool {
    let both = source.zip(victim).filter(|(source, victim)| source.inode != victim.inode);
    let are_directories =
        |(source, victim): (Known, Known)| [source, victim].map(|is| is.kind) == [Kind::Directory; 2];
    how == How::Plain && both.is_some_and(are_directories)
}

fn over<D: Directory>(
    source: Option<Known>,
    (to, victim): (&D, Option<Known>),
    how: How,
    emptied: Emptied,
) -> Over {
    let Some(victim) = victim else {
        return if how == How::Plain { Over::Nothing } else { Over::Unknown };
    };
    if is_over_directory(source, Some(victim), how) {
        return match emptied {
            Emptied::No => Over::Stays,
            emptied => emptied.replaced(&victim).map_or(Over::Unknown, Over::Gives),
        };
    }
    // A directory gives way to nothing but a directory, and replaces nothing else.
    let is_directory = |is: &Known| is.kind == Kind::Directory;
    if how == How::Plain && source.is_some_and(|source| is_directory(&source) != is_directory(&victim)) {
        return Over::Stays;
    }
    let is_known = match how {
        How::Plain => knows_names(to, &victim),
        How::Exchange => true,
        How::Other => false,
    };
    victim.replaced().filter(|_| is_known).map_or(Over::Unknown, Over::Gives)
}

/// What moves, if a record can express that and what becomes of what was there.
fn moved(source: Option<Known>, over: &Over) -> Option<Handle> {
    let file = source?.entry()?;
    let is_known = match over {
        Over::Nothing => true,
        Over::Gives(replaced) => replaced.file != file,
        Over::Stays | Over::Unknown => false,
    };
    is_known.then_some(file)
}

/// Directories that get another name, and are in the log themselves: their own names stay there.
fn own<D: Directory>(
    (from, name, source): Target<'_, D>,
    (to, to_name, victim): Target<'_, D>,
    how: How,
) -> [Option<D>; 2] {
    let own = |here: &D, name: &CStr, is: Option<Known>| {
        here.itself(name).filter(|itself| is.is_some_and(|is| is.inode == itself.inode()))
    };
    let is_directory = |is: &Known| is.kind == Kind::Directory;
    let moves = source.filter(is_directory).and_then(|_| own(from, name, source));
    let other = victim.filter(|victim| how != How::Plain && is_directory(victim));
    [moves, other.and_then(|_| own(to, to_name, victim))]
}

/// The same, and nobody else changes names in them: their change times are about to change.
struct Own<'d, D> {
    turns: [Option<Turn<'d, D>>; 2],
    /// Somebody else has none of them. One that somebody has leaves the log when that change shows.
    is_whole: bool,
}

impl<'d, D: Directory> Own<'d, D> {
    fn enter(own: &'d [Option<D>; 2]) -> Self {
        let [moves, other] = own;
        let turns = [moves, other].map(|itself| itself.as_ref().and_then(try_enter));
        let is_whole = own.iter().zip(&turns).all(|(itself, turn)| itself.is_none() || turn.is_some());
        Self { turns, is_whole }
    }

    fn leave(&self) {
        self.turns.iter().flatten().for_each(Turn::leave);
    }

    fn finish(self) {
        self.turns.into_iter().flatten().for_each(Turn::finish);
    }
}
