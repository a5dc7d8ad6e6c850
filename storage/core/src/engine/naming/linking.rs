//! link(2), within a directory and from one to another.

use core::ffi::CStr;

use rustix::io::Errno;

use super::directory::{Directory, Known};
use super::turns::{carry, enter, enter_both, knows_names};
use crate::engine::Turn;
use crate::format::{Across, NameChange};

/// link(2) within a directory.
///
/// # Errors
/// As for [`making`](super::making()).
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
    let done = turn.allowed().and_then(|()| call());
    if let Some(source) = source.filter(|_| done.is_ok() && turn.is_in_log())
        && let Some(file) = source.file()
        && turn.log(&NameChange::Linked {
            name: name.to_bytes(),
            to: to.to_bytes(),
            file,
            across: Across::No,
        })
    {
        turn.linked(source.inode);
    }
    turn.finish();
    done
}

/// link(2) of a file to another directory. Programs that deliver mail make a file's final name so, and remove the first
/// one.
///
/// # Errors
/// As for [`making`](super::making()).
pub fn linking_across<D: Directory, R>(
    (from, name): (&D, &CStr),
    (to, to_name): (&D, &CStr),
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    if from.inode().0 != to.inode().0 {
        // The kernel reports it.
        return call();
    }
    let (source, target) = enter_both(from, to);
    let done = if to.at(to_name).is_some() {
        // The kernel refuses it, and nothing changes: a lock file is taken.
        let done = call();
        if done.is_ok() {
            target.leave();
        }
        done
    } else {
        let known = from.at(name);
        let is_kept = from.keeps(name) && to.keeps(to_name);
        let ready = known.filter(|known| is_kept && is_ready((from, &source, name), (to, &target), known));
        if ready.is_none() && known.is_some() {
            target.leave();
        }
        let done = source.allowed().and_then(|()| target.allowed()).and_then(|()| call());
        if let Some(known) = ready {
            links((&source, name), (&target, to_name), &known, done.is_ok());
        }
        done
    };
    target.finish();
    source.finish();
    done
}

/// True if two records can say that this file gets a name in `to`, and what is captured of it is in the records of `to`.
fn is_ready<D: Directory>(
    (from, source, name): (&D, &Turn<'_, D>, &CStr),
    (to, target): (&D, &Turn<'_, D>),
    known: &Known,
) -> bool {
    let is_known = known.file().is_some() && known.links == 1;
    source.is_in_log() && target.is_in_log() && is_known && carry((from, source, name), (to, target), known)
}

/// The kernel has made the link, or refused it.
fn links<D: Directory>(
    (source, name): (&Turn<'_, D>, &CStr),
    (target, to_name): (&Turn<'_, D>, &CStr),
    known: &Known,
    is_made: bool,
) {
    let Some(file) = known.file() else { return };
    if !is_made {
        // A sync of the directory that has its name would not make its content durable.
        target.sync_captured();
        source.leave();
    } else if source.log_link(target, (name.to_bytes(), to_name.to_bytes()), file) {
        target.linked_across(known.inode);
    }
}
