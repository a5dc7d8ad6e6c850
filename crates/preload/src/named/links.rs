//! link(2) in directories that are in the log.

use core::ffi::{CStr, c_int};

use seawall_core::Errno;
use seawall_core::format::{NAME_MAX, NameChange};

use super::here::{Here, parent};
use crate::sys;

/// linkat(2). Within a directory it is a record, made after it: then the file has another name on the disk or in the log. So is
/// the first name of a file that was opened without one, which becomes a record as a whole: what was synced of it before had
/// no name that a power cut would leave. What comes from another directory is synced by a real sync of this one.
pub fn linking<R>(
    (old_dir, old): (c_int, &CStr),
    (new_dir, new): (c_int, &CStr),
    flags: c_int,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    let (mut old_room, mut new_room) = ([0; NAME_MAX + 1], [0; NAME_MAX + 1]);
    let Some((here, to)) = parent(new_dir, new, &mut new_room) else { return from_here(old_dir, old, call) };
    if let Some(nameless) = nameless(old_dir, old, flags) {
        let turn = here.enter();
        let done = call();
        if done.is_ok() && turn.is_in_log() && !here.capture_in(&turn, nameless, to) {
            turn.leave();
        }
        turn.finish();
        return done;
    }
    let from = parent(old_dir, old, &mut old_room).filter(|_| flags == 0);
    match from.filter(|(from, _)| from.inode == here.inode) {
        Some((_, name)) => within(&here, name, to, call),
        None => {
            let turn = here.enter();
            turn.leave();
            let done = call();
            turn.finish();
            done
        }
    }
}

fn within<R>(
    here: &Here,
    name: &CStr,
    to: &CStr,
    call: impl FnOnce() -> Result<R, Errno>,
) -> Result<R, Errno> {
    let turn = here.enter();
    let source = here.at(name).filter(|source| here.knows_names(source));
    if source.is_none() && sys::exists(here.fd, name) {
        turn.leave();
    }
    let done = call();
    if let Some((stat, file)) = source.filter(|_| done.is_ok())
        && turn.is_in_log()
        && turn.log(&NameChange::Linked { name: name.to_bytes(), to: to.to_bytes(), file })
    {
        turn.linked((stat.dev, stat.ino));
    }
    turn.finish();
    done
}

/// To a directory of which the log knows nothing: nobody removes the name meanwhile that the file has here.
fn from_here<R>(dir: c_int, path: &CStr, call: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
    let mut room = [0; NAME_MAX + 1];
    let Some((here, _)) = parent(dir, path, &mut room) else { return call() };
    let turn = here.enter();
    let done = call();
    turn.finish();
    done
}

/// The descriptor of a file without a name that is about to get one: by itself, or by its link in /proc.
fn nameless(dir: c_int, path: &CStr, flags: c_int) -> Option<c_int> {
    let fd = match flags {
        libc::AT_EMPTY_PATH if path.is_empty() => dir,
        libc::AT_SYMLINK_FOLLOW => {
            let digits = path.to_bytes().strip_prefix(b"/proc/self/fd/")?;
            core::str::from_utf8(digits).ok()?.parse().ok()?
        }
        _ => return None,
    };
    sys::fstat(fd).is_ok_and(|stat| stat.regular && stat.links == 0).then_some(fd)
}
