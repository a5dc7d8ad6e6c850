//! Without enough keepers, where the log's mode is `availability`: its files leave the log, and come back with the keepers.
//!
//! ```text
//! go         nobody is acknowledged anything ─ files to the disk ─ a mark in each directory ─ alone ─ guards down
//! come back  nothing is in the log ─ a new turn ─ enough keepers have its log ─ guards up ─ marks away
//! ```
//!
//! The order of the first line is what a takeover relies on, wherever it is: with a mark, the disk has everything that was
//! ever acknowledged; without one, the newest copy has. Nothing of it is made by whoever leads: these threads wait for the
//! keepers, and this one must not.
//!
//! Not handled here: what a sync does meanwhile (`seawall_core::journal`), and how the keepers get their copies
//! (`crate::parts::kept`).

use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use seawall_core::file::{Flag, KeptOut, Slot};
use seawall_core::journal::set_alone;
use seawall_core::recover::AloneMark;
use seawall_core::{Errno, certain};
use seawall_wire::desk::{Desk, alone};
use seawall_wire::shm::Policy;

use crate::errors::DaemonError;
use crate::parts::kept::{Due, Kept};
use crate::state::Daemon;
use crate::{aside, desk};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// Between two tries for a new turn.
const AGAIN: Duration = Duration::from_millis(500);

/// Looks what is due, until the daemon ends.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    let Some((kept, desk)) = daemon.kept.as_ref().zip(desk::of(&daemon.pool)) else { return };
    if desk.alone().load(SeqCst) == alone::GOES {
        // This one started with too few; or a former one was about to, and now there are enough.
        if kept.is_alone() {
            let _ = go(daemon, kept, desk);
        } else {
            stay(daemon, kept, desk)
        }
    }
    // One may have gone, or come back without the time for all of it.
    let mut is_aside = true;
    while !daemon.lifetime.is_ending() {
        let pause = match kept.due() {
            Due::GoAlone => {
                is_aside |= go(daemon, kept, desk);
                LOOK
            }
            Due::Begin => {
                begin(daemon, kept);
                // Another host may have the log: then nothing is acknowledged from now on.
                if kept.is_over() { Duration::ZERO } else { AGAIN }
            }
            Due::Wait => LOOK,
            Due::Nothing => {
                if kept.is_over() && kept.is_alone() {
                    nothing_counts(daemon, desk);
                } else if std::mem::take(&mut is_aside) {
                    come_back(daemon, kept);
                }
                LOOK
            }
        };
        std::thread::sleep(pause);
    }
}

/// Goes on alone. False if it may not, or cannot: then commits go on waiting.
fn go(daemon: &Daemon, kept: &Kept, desk: Desk<'_>) -> bool {
    let may = may_go(daemon);
    if may.is_ok() {
        set_alone(desk, alone::GOES);
    }
    let secured = may.and_then(|()| secure(daemon));
    // They may have come back while files were synced.
    let is_still_due = secured.as_ref().is_ok_and(|()| !kept.is_enough());
    match secured.and_then(|()| if is_still_due { mark(daemon, kept) } else { Ok(()) }) {
        Ok(()) if is_still_due => {
            kept.goes_alone(desk);
            daemon.log.say(
                "TOO FEW KEEPERS: this host goes on alone. Commits are durable on its own disk only, and \
                 would be lost with it. They go to the keepers again when this host reaches enough of them",
            );
            return true;
        }
        Ok(()) => {}
        Err(why) => {
            daemon.log.say_once("alone", format!("too few keepers, and this host cannot go on alone: {why}"));
        }
    }
    if desk.alone().load(SeqCst) == alone::GOES {
        stay(daemon, kept, desk);
    }
    false
}

/// The keepers' copies count, also when a mark was set already: it goes before anything more is acknowledged.
fn stay(daemon: &Daemon, kept: &Kept, desk: Desk<'_>) {
    while let Err(why) = unmark(daemon, AloneMark::clear) {
        daemon.log.say_once(
            "the mark of a host that is alone",
            format!("commits wait, because the mark of a host that is alone cannot be removed: {why}"),
        );
        if daemon.lifetime.is_ending() {
            return;
        }
        std::thread::sleep(AGAIN);
    }
    kept.goes_on_together();
    set_alone(desk, alone::NO);
}

/// Where pages must not tear, only the log makes them whole.
fn may_go(daemon: &Daemon) -> Result<(), String> {
    let in_use = daemon.roots.in_use(daemon.engine.shm());
    let atomic = in_use.iter().find(|(_, root)| root.policy == Policy::Atomic);
    atomic.map_or(Ok(()), |(_, root)| {
        Err(format!("{} runs with the policy atomic, and its pages could be torn", root.data.display()))
    })
}

/// Everything that was acknowledged is on the disk.
fn secure(daemon: &Daemon) -> Result<(), String> {
    for file in daemon.files.all().iter().filter(|file| daemon.engine.is_dirty(file.reference)) {
        let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", file.current_path().display());
        if daemon.engine.state(file.reference).has(Flag::FAILED) {
            return Err(failed(&"a sync of it failed before"));
        }
        // By the descriptor that is synced without the file's lock: whoever has that may wait for the keepers.
        if let Err(error) = certain::fdatasync(file.destaged.as_fd()) {
            // The next sync of it may succeed, without this error.
            daemon.engine.distrust(file.reference);
            return Err(failed(&error));
        }
    }
    match daemon.dirty_strays().next() {
        Some(slot) => Err(format!("the file of slot {} was not found", slot.number())),
        None => Ok(()),
    }
}

/// Every directory says so, durably.
fn mark(daemon: &Daemon, kept: &Kept) -> Result<(), String> {
    let (mark, turn) = (AloneMark::of(daemon.pool.uuid()), kept.turn());
    for directory in directories(daemon) {
        match mark.set(&directory, turn) {
            // Nothing of it is there into which anything could be replayed.
            Err(error) if error.kind() == ErrorKind::NotFound && !is_there(&directory) => {}
            done => done.map_err(|error| format!("cannot mark {}: {error}", directory.display()))?,
        }
    }
    Ok(())
}

/// No directory says so any more.
fn unmark(daemon: &Daemon, take_away: fn(&AloneMark, &Path) -> io::Result<()>) -> Result<(), String> {
    let mark = AloneMark::of(daemon.pool.uuid());
    for directory in directories(daemon) {
        take_away(&mark, &directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    Ok(())
}

fn directories(daemon: &Daemon) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = daemon.roots.all().into_values().map(|root| root.path).collect();
    all.sort();
    all.dedup();
    all
}

fn is_there(directory: &Path) -> bool {
    directory.symlink_metadata().is_ok()
}

/// Whatever is in the log leaves it; then a new turn, if enough keepers are reached.
fn begin(daemon: &Daemon, kept: &Kept) {
    if !is_all_out(daemon)
        && let Err(error) = take_all_out(daemon)
    {
        let text = format!(
            "this host is alone, and some files cannot leave the log, so it does not go to the keepers: \
             {error}"
        );
        return daemon.log.say_once("alone, and in the log", text);
    }
    // Whoever fetches a copy that is made from now on finds nothing in it that is older than the files.
    if is_all_out(daemon) && daemon.pool.is_complete_since(kept.turn() + 1).is_ok() && kept.begin() {
        daemon.log.say("this host reaches enough keepers again: they get the log");
    }
}

fn take_all_out(daemon: &Daemon) -> Result<(), DaemonError> {
    // After this turn every file that was being registered when this host went on alone is known, and no more come.
    drop(daemon.registering.turn());
    aside::take_out(daemon, |_| true, |file| daemon.engine.keep_out(file.reference, KeptOut::Alone))?;
    aside::lower_guards(daemon, |_| true)
}

/// True if nothing is in the log, and nothing comes into it.
fn is_all_out(daemon: &Daemon) -> bool {
    let is_out = |slot: Slot<'_>| {
        let state = slot.state();
        !state.has(Flag::USED) || state.has(Flag::ALONE) && !state.has(Flag::TRACKED) && !slot.is_dirty()
    };
    daemon.engine.slots().all(is_out)
}

/// Another host has the log: nothing that is made durable here counts any more.
fn nothing_counts(daemon: &Daemon, desk: Desk<'_>) {
    daemon.files.all().iter().for_each(|file| daemon.engine.distrust(file.reference));
    // Whoever sees this finds that no file is believed any more.
    desk.failed().store(Errno::IO.raw_os_error() as u32, SeqCst);
}

/// The keepers have the log, and files may return to it.
fn come_back(daemon: &Daemon, kept: &Kept) {
    let was_out = daemon.engine.slots().any(|slot| slot.state().has(KeptOut::Alone.flag()));
    {
        let _alone = daemon.registering.turn();
        aside::let_back(daemon, KeptOut::Alone);
    }
    if was_out {
        daemon
            .log
            .say(format!("enough keepers have the log again, in turn {}: commits go to them", kept.turn()));
    }
    // They are of an older turn, and say nothing any more.
    let _ = unmark(daemon, AloneMark::tidy);
}
