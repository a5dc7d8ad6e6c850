//! The warden: cleans up after the dead, keeps foreign writers' files out of the log, ends an idle daemon.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use seawall_core::file::Flag;
use seawall_core::{Engine, reap};
use seawall_media::locks::lock;

use crate::descriptors::Descriptors;
use crate::parts::held_out::Case;
use crate::parts::lifetime::Lifetime;
use crate::state::Daemon;
use crate::{cache, closing, directories, foreign, freeze, guarding, process, users};

/// How often the warden looks, when nobody dies meanwhile.
const TICK: Duration = Duration::from_millis(200);
/// How long a program that is about to be started waits at most for what the dead were writing.
const FINISHING: Duration = Duration::from_millis(500);
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
        let dead = dead_clients(&daemon.engine, daemon.slot, &mut watched);
        if !dead.is_empty() {
            bury(daemon, &dead);
        }
        review_foreign(daemon);
        freeze::review(daemon);
        cache::review(daemon);
        guarding::review(daemon);
        directories::review(daemon);
        if daemon.lifetime.is_over(!daemon.clients().is_empty()) && users::is_deserted(daemon) {
            closing::close_and_log(daemon);
            daemon.lifetime.end();
        }
        wait(&daemon.lifetime, &watched);
    }
}

/// Client slots whose process has ended. Opens a descriptor for every new client.
fn dead_clients(engine: &Engine, own: u32, watched: &mut Watched) -> Vec<u32> {
    let shm = engine.shm();
    let mut dead = Vec::new();
    for i in (0..shm.shape().clients).filter(|i| *i != own) {
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
        let Ok(fd) = process::open(claim.0) else { return true };
        if process::is_same(claim.0, since) {
            self.alive.insert(slot, (claim, fd));
            return false;
        }
        self.suspect.insert(slot, claim) == Some(claim)
    }
}

fn has_ended(fd: &OwnedFd) -> bool {
    let mut one = [PollFd::new(fd, PollFlags::IN)];
    rustix::event::poll(&mut one, Some(&Timespec::default())).is_ok_and(|n| n > 0)
}

fn wait(lifetime: &Lifetime, watched: &Watched) {
    let clients = watched.alive.values().map(|(_, fd)| PollFd::new(fd, PollFlags::IN));
    let mut all: Vec<_> = clients.chain(lifetime.end_event()).collect();
    let tick = Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as i64 };
    // A signal or too many descriptors: looking again a little later is right in both cases.
    if rustix::event::poll(&mut all, Some(&tick)).is_err() {
        std::thread::sleep(TICK);
    }
}

/// Finishes what a process left half published that died inside a file for which this thread waits. Where the dead are being buried at
/// this moment that comes to it too.
pub(crate) fn finish(daemon: &Daemon, slot: u32) {
    if let Ok(_alone) = daemon.burying.try_lock() {
        reap::finish_in(&daemon.engine, daemon.me(), slot, &mut descriptors(daemon));
    }
}

/// The same in every file: a program is about to be started, and may read before it joins the log. Where the dead are being buried
/// at this moment that takes a little longer; whoever waits for an answer does not wait for a disk that hangs.
pub(crate) fn finish_all(daemon: &Daemon) {
    let until = Instant::now() + FINISHING;
    while reap::half_published(&daemon.engine).next().is_some() && Instant::now() < until {
        let Ok(_alone) = daemon.burying.try_lock() else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        for slot in reap::half_published(&daemon.engine) {
            reap::finish_in(&daemon.engine, daemon.me(), slot, &mut descriptors(daemon));
        }
        return;
    }
}

/// Descriptors by which the writes of the dead are finished.
fn descriptors(daemon: &Daemon) -> Descriptors<'_> {
    let cache = daemon.cache.as_ref().map(|zone| (zone, cache::me(&daemon.engine, daemon.slot)));
    Descriptors::new(&daemon.files).announced(cache)
}

/// Finishes or voids what dead clients left, and frees what they held.
pub(crate) fn bury(daemon: &Daemon, dead: &[u32]) {
    let alone = lock(&daemon.burying);
    let mut files = descriptors(daemon);
    let reaped = reap::dead(&daemon.engine, daemon.me(), &|client| dead.contains(&client), &mut files);
    drop((files, alone));
    // Behind the writes that were finished: until then their blocks stay marked.
    cache::reap(daemon);
    if reaped.lanes + reaped.locks > 0 {
        daemon.log.say(format!(
            "{} processes ended, some in the middle of a write: {} writes finished, {} lanes and {} locks freed",
            reaped.clients, reaped.finished, reaped.lanes, reaped.locks
        ));
    }
}

/// Lets files back whose foreign writers have gone: their guards go up first. All files of a guard that stands aside come
/// back together, or it would stand in the way of a stranger who has another one of them open.
fn review_foreign(daemon: &Daemon) {
    let now = Instant::now();
    if !daemon.held_out.has_due(now) {
        return;
    }
    let _alone = daemon.registering.turn();
    let cases = daemon.held_out.cases(now);
    let stays = |case: &&Case| !case.is_due || is_wanted(daemon, case.slot, case.pid);
    let staying: BTreeSet<u32> = cases.iter().filter(stays).map(|case| case.slot).collect();
    for Case { slot, .. } in cases.into_iter().filter(|case| case.is_due) {
        let waits = || daemon.guards.is_aside(slot) && !daemon.guards.companions(slot).is_disjoint(&staying);
        if staying.contains(&slot) || waits() || !let_back(daemon, slot) {
            daemon.held_out.wait_on(slot, now);
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
        daemon.held_out.forget(slot);
        return true;
    };
    if daemon.engine.state(file.reference).has(Flag::FROZEN) {
        return false;
    }
    if let Err(e) = guarding::come_back(daemon, &file) {
        daemon.log.say_once(&e.to_string(), e.to_string());
        return false;
    }
    daemon.held_out.forget(slot);
    guarding::let_back(daemon, file.reference);
    true
}
