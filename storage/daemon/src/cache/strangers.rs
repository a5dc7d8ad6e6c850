//! Writers without the preload: their file is suspended before they can write, and looked at.
//!
//! | how an open is seen | what is guaranteed |
//! |---|---|
//! | it waits for us (fanotify) | the file is suspended before the open returns, whatever it is for. When nobody has it open for writing any more it is served again: with its blocks if it has not changed, or without |
//! | after the fact (inotify) | a writer that is still there some milliseconds later is seen, and the blocks of its file are dropped. One that opened, wrote and closed in less is not seen: what was cached before may be served |
//!
//! When a file is entered, the daemon looks for writers that are there already.

use std::time::Duration;

use seawall_cache::shared::Identity;
use seawall_media::locks::lock;

use super::identity::now;
use super::zone::{Entered, Zone};
use crate::log::Log;
use crate::parts::files::path_of;
use crate::state::Daemon;
use crate::{foreign, process};

/// How long a file must have been left alone for its times to show another change.
const SETTLED_NS: i64 = 50_000_000;

/// A stranger is about to open a file; it waits until this returns. False if a file has been entered for so long, and it may be
/// this one: what is entered by then has to be looked at again.
#[must_use]
pub(crate) fn opened(daemon: &Daemon, (dev, ino): (u64, u64), pid: u32, limit: Duration) -> bool {
    let Some(zone) = &daemon.cache else { return true };
    // A file is watched before it is entered: an open in between is judged when it is.
    let is_entered = zone.entering.take_within(limit).is_some();
    if let Some(entered) = zone.by_inode(dev, ino) {
        suspend(zone, &daemon.log, &entered, pid, settled(&entered));
    }
    is_entered
}

/// The same of one that has opened it already: what the file was before is not known.
pub(crate) fn opened_unseen(daemon: &Daemon, (dev, ino): (u64, u64), pid: u32) {
    let Some(zone) = &daemon.cache else { return };
    drop(zone.entering.take());
    if let Some(entered) = zone.by_inode(dev, ino) {
        suspend(zone, &daemon.log, &entered, pid, None);
    }
}

/// A file was opened, by whomever: does one of these strangers write it?
pub(crate) fn look_for_writers(daemon: &Daemon, (dev, ino): (u64, u64), strangers: &[u32]) {
    let Some(zone) = &daemon.cache else { return };
    drop(zone.entering.take());
    let Some(entered) = zone.by_inode(dev, ino) else { return };
    let will_join = |pid| daemon.will_join(pid);
    if let Some(pid) = foreign::writers(dev, ino, strangers.iter().copied(), will_join).next() {
        suspend(zone, &daemon.log, &entered, pid, None);
    }
}

/// Suspends the files that a process writes: the process goes without Seawall.
pub(crate) fn suspend_those_of(daemon: &Daemon, pid: u32) {
    let Some(zone) = &daemon.cache else { return };
    drop(zone.entering.take());
    for entered in zone.all().iter().filter(|entered| foreign::writes(pid, entered.dev, entered.ino)) {
        suspend(zone, &daemon.log, entered, pid, None);
    }
}

fn suspend(zone: &Zone, log: &Log, entered: &Entered, pid: u32, before: Option<Identity>) {
    let mut suspended = lock(&zone.suspended);
    zone.cache.suspend(entered.reference);
    suspended.note(entered.reference.slot, pid, before);
    drop(suspended);
    let (path, name) = (path_of(&entered.file).unwrap_or_default(), process::name(pid));
    log.say_once(
        &format!("cache {}{name}", path.display()),
        format!(
            "{} was opened by {name} ({pid}), which runs without Seawall: the file is not cached meanwhile",
            path.display()
        ),
    );
}

/// What the file is, if a change from now on is sure to show.
fn settled(entered: &Entered) -> Option<Identity> {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let ns = clock.tv_sec * 1_000_000_000 + clock.tv_nsec;
    now(&entered.file).filter(|now| ns - now.mtime_ns.max(now.ctime_ns) >= SETTLED_NS)
}

/// Serves the files again whose strangers have gone.
pub(crate) fn review(daemon: &Daemon) {
    let Some(zone) = &daemon.cache else { return };
    let due = lock(&zone.suspended).due();
    for (slot, pid) in due {
        let Some(entered) = zone.get(slot) else { continue };
        // Whose descriptors may not be seen counts as a writer for as long as it lives.
        let stays = foreign::is_hidden(pid) || daemon.may_have_foreign_writers(entered.dev, entered.ino);
        let now = now(&entered.file);
        let mut suspended = lock(&zone.suspended);
        if !suspended.is_due(slot) {
            continue;
        }
        if stays {
            suspended.wait_on(slot);
            continue;
        }
        zone.cache.resume(entered.reference, suspended.is_as_before(slot, now));
        suspended.forget(slot);
    }
}
