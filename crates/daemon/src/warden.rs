//! The warden: cleans up after the dead, keeps foreign writers' files out of the log, ends an idle daemon.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use seawall_core::file::{Flag, KeptOut};
use seawall_core::{FileRef, reap};
use seawall_media::locks::lock;

use crate::files::{Descriptors, Managed};
use crate::state::{Daemon, real_sync};
use crate::{cache, closing, foreign, freeze, guarding, process};

/// How often the warden looks, when nobody dies meanwhile.
const TICK: Duration = Duration::from_millis(200);
/// A foreign open is not yet visible in `/proc` when it is allowed.
const GRACE: Duration = Duration::from_secs(1);

/// Files held out of the log because of foreign processes.
#[derive(Default)]
pub(crate) struct Foreign {
    held: HashMap<u32, Held>,
}

struct Held {
    file: FileRef,
    /// Not to be let back before.
    until: Instant,
    /// The process that was seen last.
    pid: u32,
}

impl Foreign {
    /// True if this one is.
    pub fn holds(&self, slot: u32) -> bool {
        self.held.contains_key(&slot)
    }

    /// The slot is free: nothing to release any more.
    pub fn forget(&mut self, slot: u32) {
        self.held.remove(&slot);
    }
}

/// The claim of a client slot: process id and generation.
type Claim = (u32, u32);

/// Clients that are watched, by slot.
#[derive(Default)]
struct Watched {
    /// Descriptors that become readable when the process ends.
    alive: HashMap<u32, (Claim, OwnedFd)>,
    /// Claims whose time stamp says that the process id was used again. A claim is made in three stores, so
    /// this is believed only when it is seen twice.
    suspect: HashMap<u32, Claim>,
}

/// Runs until the daemon ends.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    let mut watched = Watched::default();
    while !daemon.lifetime.is_ending() {
        let dead = dead_clients(daemon, &mut watched);
        if !dead.is_empty() {
            bury(daemon, &dead);
        }
        review_foreign(daemon);
        freeze::review(daemon);
        cache::review(daemon);
        guarding::review(daemon);
        if daemon.lifetime.is_over(!daemon.clients().is_empty()) && closing::is_deserted(daemon) {
            closing::close_and_log(daemon);
            daemon.lifetime.end();
        }
        wait(daemon, &watched);
    }
}

/// Client slots whose process has ended. Opens a descriptor for every new client.
fn dead_clients(daemon: &Daemon, watched: &mut Watched) -> Vec<u32> {
    let shm = daemon.engine.shm();
    let mut dead = Vec::new();
    for i in (0..shm.shape().clients).filter(|i| *i != daemon.slot) {
        let Some(client) = shm.client(i) else { continue };
        let claim = (client.pid().load(Acquire), client.generation().load(Acquire));
        if claim.0 == 0 {
            watched.alive.remove(&i);
        } else if watched.is_dead(i, claim, client.since().load(Acquire)) {
            watched.alive.remove(&i);
            dead.push(i);
        }
    }
    dead
}

impl Watched {
    fn is_dead(&mut self, slot: u32, claim: Claim, since: u64) -> bool {
        if let Some((_, fd)) = self.alive.get(&slot).filter(|(seen, _)| *seen == claim) {
            return has_ended(fd);
        }
        let Some(fd) = open(claim.0) else { return true };
        if process::is_same(claim.0, since) {
            self.alive.insert(slot, (claim, fd));
            return false;
        }
        self.suspect.insert(slot, claim) == Some(claim)
    }
}

fn open(pid: u32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()
}

fn has_ended(fd: &OwnedFd) -> bool {
    let mut one = [PollFd::new(fd, PollFlags::IN)];
    rustix::event::poll(&mut one, Some(&Timespec::default())).is_ok_and(|n| n > 0)
}

fn wait(daemon: &Daemon, watched: &Watched) {
    let clients = watched.alive.values().map(|(_, fd)| PollFd::new(fd, PollFlags::IN));
    let mut all: Vec<_> = clients.chain(daemon.lifetime.end_event()).collect();
    let tick = Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as i64 };
    // A signal or too many descriptors: looking again a little later is right in both cases.
    if rustix::event::poll(&mut all, Some(&tick)).is_err() {
        std::thread::sleep(TICK);
    }
}

/// Finishes or voids what dead clients left, and frees what they held.
pub(crate) fn bury(daemon: &Daemon, dead: &[u32]) {
    let mut files = Descriptors::new(&daemon.files).announced(daemon);
    let reaped = reap::dead(&daemon.engine, daemon.me(), &|client| dead.contains(&client), &mut files);
    drop(files);
    // Behind the writes that were finished: until then their blocks stay marked.
    cache::reap(daemon);
    if reaped.lanes + reaped.locks > 0 {
        daemon.log.say(format!(
            "{} processes ended, some in the middle of a write: {} writes finished, {} lanes and {} locks freed",
            reaped.clients, reaped.finished, reaped.lanes, reaped.locks
        ));
    }
}

/// Takes a file out of the log, now, until no foreign process writes to it any more.
pub(crate) fn keep_out(daemon: &Daemon, file: &Managed, pid: u32) {
    let mut foreign = lock(&daemon.foreign);
    let until = Instant::now() + GRACE;
    let held = foreign.held.insert(file.reference.slot, Held { file: file.reference, until, pid });
    if held.is_some_and(|held| held.file == file.reference) {
        return;
    }
    daemon.engine.keep_out(file.reference, KeptOut::Foreign);
    daemon.engine.hold(daemon.me(), file.reference, || real_sync(file));
    drop(foreign);
    if pid == 0 {
        // The watchdog let somebody open it.
        return;
    }
    let (path, name) = (file.current_path(), process::name(pid));
    daemon.log.say_once(
        &format!("{}{name}", path.display()),
        format!(
            "{} was opened by {name} ({pid}), which runs without Seawall: it has left the log meanwhile",
            path.display()
        ),
    );
}

/// Takes the files out of the log that a process writes which was told to go without Seawall.
pub(crate) fn keep_out_of(daemon: &Daemon, pid: u32) {
    cache::suspend_those_of(daemon, pid);
    for file in daemon.files.all().iter().filter(|file| foreign::writes(pid, file.dev, file.ino)) {
        keep_out(daemon, file, pid);
    }
}

/// Looks whether one of these processes, which are foreign, has the file open for writing.
pub(crate) fn look_for_writers(daemon: &Daemon, (dev, ino): (u64, u64), strangers: &[u32]) {
    cache::look_for_writers(daemon, (dev, ino), strangers);
    let known = daemon.engine.find(dev, ino);
    let Some(file) = known.and_then(|file| daemon.files.get(file.slot)) else { return };
    let will_join = |pid| daemon.will_join(pid);
    if let Some(pid) = foreign::writers(dev, ino, strangers.iter().copied(), will_join).next() {
        keep_out(daemon, &file, pid);
    }
}

/// Lets files back whose foreign writers have gone: their guards go up first. All files of a guard that stands aside come
/// back together, or it would stand in the way of a stranger who has another one of them open.
fn review_foreign(daemon: &Daemon) {
    let now = Instant::now();
    if !lock(&daemon.foreign).held.values().any(|held| held.until <= now) {
        return;
    }
    let _alone = lock(&daemon.registering);
    let held: Vec<(u32, u32, bool)> =
        lock(&daemon.foreign).held.iter().map(|(slot, h)| (*slot, h.pid, h.until <= now)).collect();
    let stays = |(slot, pid, is_due): &&(u32, u32, bool)| !is_due || is_wanted(daemon, *slot, *pid);
    let staying: BTreeSet<u32> = held.iter().filter(stays).map(|(slot, ..)| *slot).collect();
    for (slot, _, is_due) in held {
        let waits = || daemon.guards.is_aside(slot) && !daemon.guards.companions(slot).is_disjoint(&staying);
        if !is_due {
            continue;
        }
        if staying.contains(&slot) || waits() || !let_back(daemon, slot) {
            lock(&daemon.foreign).held.entry(slot).and_modify(|held| held.until = now + GRACE);
        }
    }
}

/// True while somebody may write to it. Whose descriptors may not be seen counts as a writer for as long as it lives.
fn is_wanted(daemon: &Daemon, slot: u32, pid: u32) -> bool {
    let Some(file) = daemon.files.get(slot) else { return false };
    foreign::is_hidden(pid) || daemon.may_have_foreign_writers(file.dev, file.ino)
}

/// False if it must not come back yet.
fn let_back(daemon: &Daemon, slot: u32) -> bool {
    let Some(file) = daemon.files.get(slot) else {
        lock(&daemon.foreign).forget(slot);
        return true;
    };
    if daemon.engine.state(file.reference).has(Flag::FROZEN) {
        return false;
    }
    if let Err(e) = guarding::come_back(daemon, &file) {
        daemon.log.say_once(&e.to_string(), e.to_string());
        return false;
    }
    lock(&daemon.foreign).forget(slot);
    guarding::let_back(daemon, file.reference);
    true
}
