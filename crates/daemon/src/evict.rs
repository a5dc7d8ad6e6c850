//! Eviction: a full table gives up the entry of a file that nobody writes.
//!
//! Input: a table without a free entry. Output: one that has one, or the word that every file is in use: then the
//! newcomer is left to the kernel (P4), which `status` counts.
//!
//! | what may use a file | how it is known that nothing does |
//! |---|---|
//! | a descriptor for writing, and what comes of one: mapping, ring, message under way | a read lease (fcntl(2)) is granted only when there is none; until it is given back, whoever opens one waits |
//! | a thread inside, dead or alive | the file's lock is free |
//! | the log | its records are retired first |
//!
//! The caller holds `registering`.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use nix::libc::{F_RDLCK, F_UNLCK};
use rustix::process::{Resource, getrlimit};

use seawall_core::file::Slot;

use crate::state::{Daemon, real_sync};
use crate::{cache, process, register, sys};

/// Descriptors that are not for files: pool, sockets, connections, clients.
const RESERVED: u64 = 256;
/// After a look that found nothing, none is taken for this long: it asks the kernel about every file.
const PAUSE: Duration = Duration::from_millis(200);

/// Files that can be managed at a time: each takes an entry and two descriptors.
pub(crate) fn capacity(daemon: &Daemon) -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // The block cache has one for each of its files, a third of all at most.
    let for_cache = if daemon.cache.is_some() { cache::capacity() as u64 } else { 0 };
    let files = descriptors.saturating_sub(RESERVED + for_cache) / 2;
    files.clamp(1, u64::from(daemon.pool.superblock.files)) as usize
}

/// True if one more file can be managed, after an eviction if need be.
pub(crate) fn has_room(daemon: &Daemon) -> bool {
    if daemon.files.count() < capacity(daemon) {
        return true;
    }
    let now = process::now_ns();
    if now < daemon.crowded_until.load(Acquire) {
        return turn_away(daemon);
    }
    if make_room(daemon) {
        return true;
    }
    daemon.crowded_until.store(now + PAUSE.as_nanos() as u64, Relaxed);
    turn_away(daemon)
}

fn turn_away(daemon: &Daemon) -> bool {
    daemon.turned_away.fetch_add(1, Relaxed);
    daemon.log.say_once(
        "crowded",
        format!(
            "all {} files that can be managed are in use: others are left to the kernel, their fsyncs are real. \
             A larger pool manages more (4096 from 1 GiB on); so does a higher limit of open files",
            capacity(daemon)
        ),
    );
    false
}

/// Evicts one file.
pub(crate) fn make_room(daemon: &Daemon) -> bool {
    let engine = &daemon.engine;
    let price = |slot: Slot<'_>| Some((engine.eviction_price(slot)?, slot.number()));
    let mut idle: Vec<_> = engine.slots().filter_map(price).collect();
    idle.sort_unstable();
    idle.into_iter().any(|(_, slot)| evict(daemon, slot))
}

/// Takes the entry of one file away, if nobody can write it. The caller holds `registering`.
pub(crate) fn evict(daemon: &Daemon, slot: u32) -> bool {
    let Some(managed) = daemon.files.get(slot) else { return false };
    if !sys::lease(managed.file.as_fd(), F_RDLCK) {
        return false;
    }
    let gone = daemon.engine.evict(daemon.me(), managed.reference, || real_sync(&managed));
    if gone {
        register::strike_out(daemon, slot, (managed.dev, managed.ino));
        daemon.evicted.fetch_add(1, Relaxed);
    }
    sys::lease(managed.file.as_fd(), F_UNLCK);
    gone
}
