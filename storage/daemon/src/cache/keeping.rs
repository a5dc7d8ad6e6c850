//! What a zone needs now and then: files noted, operations of the dead reaped, files forgotten that are gone, samples
//! taken; and the end, when nobody is attached.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use seawall_cache::access::Access;
use seawall_cache::shared::OperationOwner;
use seawall_core::Engine;
use seawall_media::locks::lock;

use super::applying::apply;
use super::identity::{is_unlinked, now};
use super::zone::{Entered, Zone};
use super::{death, takeover};
use crate::parts::lifetime::Lifetime;
use crate::state::Daemon;
use crate::{foreign, process, users};

/// How often samples are taken: their buffer holds those of some hundred milliseconds of heavy reading.
const TICK: Duration = Duration::from_millis(200);
/// How often files are noted: what a restart without a clean end compares with.
const NOTE: Duration = Duration::from_secs(10);
/// How often removed files are looked for: as long as we have one open it keeps its blocks.
const LOOK: Duration = Duration::from_secs(1);

/// Runs until the daemon ends.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    let Some(zone) = &daemon.cache else { return };
    zone.policies.tell(&daemon.log);
    takeover::find_files(daemon, zone);
    apply(zone);
    let (mut seen, mut noted, mut looked) = (0, Instant::now(), Instant::now());
    while !daemon.lifetime.is_ending() {
        let (samples, next) = zone.cache.samples(seen);
        seen = next;
        for access in samples {
            let (Access::Read(block) | Access::Write(block)) = access;
            lock(&zone.advisory).take(access, zone.cache.policy(block.file));
        }
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            forget_gone(daemon, zone);
        }
        if noted.elapsed() >= NOTE {
            noted = Instant::now();
            note_all(zone);
            apply(zone);
            reap(daemon);
            leave_if_deserted(daemon, zone);
        }
        wait(&daemon.lifetime);
    }
}

fn wait(lifetime: &Lifetime) {
    let mut end: Vec<_> = lifetime.end_event().into_iter().collect();
    let tick = Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as i64 };
    if end.is_empty() || rustix::event::poll(&mut end, Some(&tick)).is_err() {
        std::thread::sleep(TICK);
    }
}

fn clock_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

fn note_all(zone: &Zone) {
    for entered in zone.all() {
        // A stranger's changes are not vouched for; whether there is one is looked at under the same lock.
        let _alone = zone.entering.take();
        let is_trusted = !zone.cache.is_suspended(entered.reference);
        // The clock first: what changes after that changes the times.
        let at = clock_ns();
        if let Some(now) = now(&entered.file).filter(|_| is_trusted) {
            zone.cache.note(entered.reference, &now, at);
        }
    }
}

/// Forgets files that nobody can open any more and nobody has open.
fn forget_gone(daemon: &Daemon, zone: &Zone) {
    for entered in zone.all().iter().filter(|entered| is_unlinked(&entered.file)) {
        let _alone = zone.entering.take();
        if foreign::is_only_open(&entered.file) {
            zone.cache.forget(entered.reference);
            drop_entered(daemon, zone, entered);
        }
    }
}

fn drop_entered(daemon: &Daemon, zone: &Zone, entered: &Entered) {
    zone.remove(entered.reference.slot);
    daemon.unwatch(&entered.file, (entered.dev, entered.ino));
}

/// Tidies up after operations of processes that have ended. What they wrote to the log must be finished before.
pub(crate) fn reap(daemon: &Daemon) {
    let Some(zone) = &daemon.cache else { return };
    let known: RefCell<HashMap<u32, bool>> = RefCell::default();
    let is_dead = |owner: OperationOwner| {
        let ask = || is_dead(&daemon.engine, owner);
        *known.borrow_mut().entry(owner.process()).or_insert_with(ask)
    };
    zone.cache.reap(is_dead);
}

fn is_dead(engine: &Engine, owner: OperationOwner) -> bool {
    let (slot, generation) = owner.client();
    let Some(client) = engine.shm().client(slot) else { return true };
    let pid = client.pid().load(Acquire);
    pid == 0
        || client.generation().load(Acquire) as u16 != generation
        || !process::is_same(pid, client.since().load(Acquire))
}

/// A daemon that stays lets the files go when the last front has gone.
fn leave_if_deserted(daemon: &Daemon, zone: &Zone) {
    if zone.all().is_empty() || !daemon.clients().is_empty() || !users::is_deserted(daemon) {
        return;
    }
    let _alone = daemon.registering.turn();
    if users::is_deserted(daemon) {
        leave_all(daemon);
    }
}

/// Nobody is attached: every file is noted as it is, on a medium that survives power loss after a sync.
pub(crate) fn leave_all(daemon: &Daemon) {
    let Some(zone) = &daemon.cache else { return };
    let _alone = zone.entering.take();
    let _complete = lock(&zone.bringing);
    reap(daemon);
    for entered in zone.all() {
        let file = entered.reference;
        if zone.cache.is_durable() {
            let number = zone.cache.begin_sync(file);
            let is_done = rustix::fs::fdatasync(&entered.file).is_ok();
            zone.cache.end_sync(file, number, is_done);
        }
        let at = clock_ns();
        match now(&entered.file) {
            Some(now) if !is_unlinked(&entered.file) => zone.cache.leave(file, &now, at),
            _ => zone.cache.forget(file),
        }
        drop_entered(daemon, zone, &entered);
    }
    // Those of a former daemon that were not found: nobody knows what they are now.
    for tenant in zone.cache.tenants() {
        zone.cache.leave(tenant.file, &tenant.record.identity, i64::MIN);
    }
    if users::is_deserted(daemon) {
        zone.cache.calm();
    }
}

/// The zone is closed for good: nobody is attached, and nobody will be.
pub(crate) fn close(daemon: &Daemon) {
    let Some(zone) = &daemon.cache else { return };
    death::revoke(zone);
    leave_all(daemon);
    zone.cache.close();
    match zone.disk.as_ref().map_or(Ok(()), |disk| disk.save(&zone.cache)) {
        Ok(()) => daemon.log.say("the block cache is closed"),
        Err(e) => daemon.log.say(format!("cannot save the block cache's index, which stays in memory: {e}")),
    }
}
