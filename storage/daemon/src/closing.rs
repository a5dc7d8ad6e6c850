//! The end of a log's life: everything on disk, nothing registered, guards down.
//!
//! Only when nobody can write any more. Registration is excluded meanwhile, so a client that comes too early
//! registers anew afterwards, and that raises the guard again.

use crate::errors::DaemonError;
use crate::state::Daemon;
use crate::{absent, aside, cache, destaging, forget, journal, roots, users};

/// Retires and forgets every file, then lowers the guards. The caller made sure that nobody is left.
///
/// # Errors
/// What the disk did not take: those files stay registered, and their guards up.
pub(crate) fn close(daemon: &Daemon) -> Result<(), DaemonError> {
    let _alone = daemon.registering.turn();
    let mut undrained = Vec::new();
    for file in daemon.files.all() {
        absent::remove(daemon, &file);
        daemon.without_log(&file, || ());
        if daemon.engine.is_dirty(file.reference) {
            undrained.push(file.current_path().display().to_string());
        } else {
            forget::forget(daemon, file.reference.slot);
        }
    }
    for slot in daemon.dirty_strays() {
        undrained.push(format!("the file of slot {}, which was not found", slot.number()));
    }
    destaging::round(daemon);
    cache::leave_all(daemon);
    roots::withdraw_unnamed(daemon);
    if !daemon.has_its_log() {
        return Err(DaemonError::TakenOver);
    }
    let lowered = aside::lower_quiet(daemon, Vec::new());
    if undrained.is_empty() { lowered } else { Err(DaemonError::Undrained { files: undrained }) }
}

/// Removes what belongs to this boot, unless somebody came meanwhile. The log was closed, or not used yet.
pub(crate) fn forget_boot(daemon: &Daemon) {
    let _alone = daemon.registering.turn();
    // First this, then the look: a process that greets after the look is sent away.
    daemon.registering.give_up();
    if users::is_deserted(daemon) && journal::forget_image(daemon) {
        daemon.lent.remove_memory();
    } else {
        daemon.registering.go_on();
    }
}

/// [`close`], for callers that have nobody to tell.
pub(crate) fn close_and_log(daemon: &Daemon) {
    match close(daemon) {
        Ok(()) => daemon.log.say("drained, guards down"),
        Err(e) => daemon.log.say(format!("the log was not closed cleanly: {e}")),
    }
}
