//! Writers without the preload: their file is suspended before they can write, and looked at.
//!
//! | how an open is seen | what is guaranteed |
//! |---|---|
//! | it waits for us (fanotify) | the file is suspended before the open returns, whatever it is for. When nobody has it open for writing any more it is served again: with its blocks if it has not changed, or without |
//! | after the fact (inotify) | a writer that is still there some milliseconds later is seen, and the blocks of its file are dropped. One that opened, wrote and closed in less is not seen: what was cached before may be served |
//!
//! Who is there already when a file is entered is looked for then.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use seawall_cache::shared::Identity;
use seawall_media::locks::lock;

use super::enter::now;
use super::{Entered, Zone};
use crate::state::Daemon;
use crate::{foreign, process};

/// A foreign open is not yet visible in `/proc` when it is allowed.
const GRACE: Duration = Duration::from_secs(1);
/// How long a file must have been left alone for its times to show another change.
const SETTLED_NS: i64 = 50_000_000;

/// Files that are suspended, by slot.
#[derive(Default)]
pub(super) struct Suspended(HashMap<u32, Stranger>);

struct Stranger {
    pid: u32,
    /// Not to be served again before.
    until: Instant,
    /// What the file was before the stranger could write it; `None` if that is not known.
    before: Option<Identity>,
}

impl Suspended {
    /// The slot is another file's, or nobody's.
    pub fn forget(&mut self, slot: u32) {
        self.0.remove(&slot);
    }
}

/// A stranger is about to open a file; it waits until this returns.
pub(crate) fn opened(daemon: &Daemon, (dev, ino): (u64, u64), pid: u32) {
    let Some(zone) = &daemon.cache else { return };
    // A file is watched before it is entered: an open in between is judged when it is.
    drop(lock(&zone.entering));
    if let Some(entered) = zone.by_inode(dev, ino) {
        suspend(daemon, zone, &entered, pid, settled(&entered));
    }
}

/// The same of one that has opened it already: what the file was before is not known.
pub(crate) fn opened_unseen(daemon: &Daemon, (dev, ino): (u64, u64), pid: u32) {
    let Some(zone) = &daemon.cache else { return };
    drop(lock(&zone.entering));
    if let Some(entered) = zone.by_inode(dev, ino) {
        suspend(daemon, zone, &entered, pid, None);
    }
}

/// A file was opened, by whomever: does one of these strangers write it?
pub(crate) fn look_for_writers(daemon: &Daemon, (dev, ino): (u64, u64), strangers: &[u32]) {
    let Some(zone) = &daemon.cache else { return };
    drop(lock(&zone.entering));
    let Some(entered) = zone.by_inode(dev, ino) else { return };
    let will_join = |pid| daemon.will_join(pid);
    if let Some(pid) = foreign::writers(dev, ino, strangers.iter().copied(), will_join).next() {
        suspend(daemon, zone, &entered, pid, None);
    }
}

/// Suspends the files that a process writes which was told to go without Seawall.
pub(crate) fn suspend_those_of(daemon: &Daemon, pid: u32) {
    let Some(zone) = &daemon.cache else { return };
    drop(lock(&zone.entering));
    for entered in zone.all().iter().filter(|entered| foreign::writes(pid, entered.dev, entered.ino)) {
        suspend(daemon, zone, entered, pid, None);
    }
}

pub(super) fn suspend(daemon: &Daemon, zone: &Zone, entered: &Entered, pid: u32, before: Option<Identity>) {
    let mut suspended = lock(&zone.suspended);
    zone.cache.suspend(entered.reference);
    let until = Instant::now() + GRACE;
    let stranger = suspended.0.entry(entered.reference.slot).or_insert(Stranger { pid, until, before });
    (stranger.pid, stranger.until) = (pid, until);
    drop(suspended);
    let (path, name) = (crate::parts::files::path_of(&entered.file).unwrap_or_default(), process::name(pid));
    daemon.log.say_once(
        &format!("cache {}{name}", path.display()),
        format!(
            "{} was opened by {name} ({pid}), which runs without Seawall: not cached meanwhile",
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
    let is_due = |stranger: &Stranger| stranger.until <= Instant::now();
    let due: Vec<(u32, u32)> =
        lock(&zone.suspended).0.iter().filter(|(_, s)| is_due(s)).map(|(slot, s)| (*slot, s.pid)).collect();
    for (slot, pid) in due {
        let entered = lock(&zone.entered).get(&slot).cloned();
        let Some(entered) = entered else { continue };
        // Whose descriptors may not be seen counts as a writer for as long as it lives.
        let stays = foreign::is_hidden(pid) || daemon.may_have_foreign_writers(entered.dev, entered.ino);
        let now = now(&entered.file);
        let mut suspended = lock(&zone.suspended);
        let Some(stranger) = suspended.0.get_mut(&slot).filter(|stranger| is_due(stranger)) else { continue };
        if stays {
            stranger.until = Instant::now() + GRACE;
            continue;
        }
        let is_same = now.is_some() && stranger.before == now;
        zone.cache.resume(entered.reference, is_same);
        suspended.0.remove(&slot);
    }
}
