//! Files that are out of the log for a while, all together, and whose guards are down meanwhile: what is on the disk is all
//! there is.
//!
//! Input: which directories, and why. Invariant: a file that is kept out has no live record and gets none, whoever dies,
//! until its guard is up again. The mark lies in the run-time memory, so it outlives the daemon.

use std::collections::BTreeSet;

use seawall_core::file::KeptOut;

use crate::absent;
use crate::destaging;
use crate::errors::DaemonError;
use crate::guard::GuardError;
use crate::parts::files::Managed;
use crate::state::Daemon;

/// The reasons for which guards are down. A file may be kept out for both.
const REASONS: [KeptOut; 2] = [KeptOut::Frozen, KeptOut::Alone];

/// Takes the files of these directories, by their index, out of the log: a real sync of each. Each is `marked` while nobody else
/// changes it.
///
/// # Errors
/// What the disk did not take.
pub(crate) fn take_out(
    daemon: &Daemon,
    covered: impl Fn(u32) -> bool,
    marked: impl Fn(&Managed),
) -> Result<(), DaemonError> {
    let mut undrained = Vec::new();
    for file in daemon.files.all().iter().filter(|file| covered(file.root)) {
        absent::remove(daemon, file);
        daemon.without_log(file, || marked(file));
        if daemon.engine.is_dirty(file.reference) {
            undrained.push(file.current_path().display().to_string());
        }
    }
    for slot in daemon.dirty_strays().filter(|slot| covered(slot.root())) {
        undrained.push(format!("the file of slot {}, which was not found", slot.number()));
    }
    destaging::round(daemon);
    if undrained.is_empty() { Ok(()) } else { Err(DaemonError::Undrained { files: undrained }) }
}

/// Lowers the guards of these directories, whose files are out of the log.
///
/// # Errors
/// The first one that stays up; another host has the log.
pub(crate) fn lower_guards(daemon: &Daemon, covered: impl Fn(u32) -> bool) -> Result<(), DaemonError> {
    let _alone = daemon.registering.turn();
    let files = daemon.files.all();
    let out: BTreeSet<u32> =
        files.iter().filter(|file| covered(file.root)).map(|file| file.reference.slot).collect();
    if !daemon.has_its_log() {
        return Err(DaemonError::TakenOver);
    }
    let errors = daemon.guards.step_aside(&out, &daemon.hand());
    lower_quiet(daemon, errors)
}

/// Lowers the guards of files that are gone, or given up, durably. The caller's errors come first.
///
/// # Errors
/// The first one.
pub(crate) fn lower_quiet(daemon: &Daemon, mut errors: Vec<GuardError>) -> Result<(), DaemonError> {
    errors.extend(daemon.guards.lower_quiet(&daemon.hand(), || true));
    errors.extend(daemon.guards.sync_lowered());
    errors.into_iter().next().map_or(Ok(()), |error| Err(error.into()))
}

/// Raises the guards of all files that were kept out for this reason alone, and takes the mark off. Files whose guard cannot
/// be raised keep it, so their syncs stay real; they are returned. The caller has the turn of `registering`.
pub(crate) fn let_back(daemon: &Daemon, why: KeptOut) -> Vec<String> {
    let is_out = |file: &Managed| daemon.engine.state(file.reference).has(why.flag());
    let mut left_out = Vec::new();
    for file in daemon.files.all().iter().filter(|file| is_out(file) && !file.is_unlinked()) {
        let (path, slot) = (daemon.guarded_path(file), file.reference.slot);
        let Some(root) = daemon.roots.get(file.root) else { continue };
        let state = daemon.engine.state(file.reference);
        let has_another = REASONS.into_iter().any(|other| other != why && state.has(other.flag()));
        // Out of the log for a stranger too: the guard comes back when that has gone.
        let is_watched = daemon.guards.is_aside(slot) && daemon.held_out.holds(slot);
        let raised = match has_another || is_watched {
            true => Ok(()),
            false => daemon.guards.come_back(slot, &root, &path, &daemon.hand()),
        };
        match raised {
            Ok(()) => daemon.engine.let_back(file.reference, why),
            Err(e) => left_out.push(format!("{}: {e}", path.display())),
        }
    }
    for line in &left_out {
        daemon.log.say(format!("a file stays out of the log until it is registered again: {line}"));
    }
    left_out
}
