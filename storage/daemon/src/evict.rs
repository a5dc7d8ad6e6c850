//! Eviction: a full table gives up the entry of a file that nobody writes.
//!
//! Input: a table without a free entry. Output: one that has one, or the word that every file is in use: then the
//! newcomer is left to the kernel (P4), which `status` counts.
//!
//! | what may use a file | how it is known that nothing does |
//! |---|---|
//! | a descriptor for writing, and what comes of one: mapping, io_uring, message under way | a read lease (fcntl(2)) is granted only when there is none; until it is given back, whoever opens one waits |
//! | a thread inside, dead or alive; a change of a directory's names | the file's lock is free |
//! | the log | its records are retired first |
//!
//! The caller has the turn of `registering`.

use std::os::fd::AsFd;

use nix::libc::{F_RDLCK, F_UNLCK};
use rustix::process::{Resource, getrlimit};

use seawall_core::file::Slot;
use seawall_core::pool::Pool;

use crate::cache::Zone;
use crate::parts::files::real_sync;
use crate::state::Daemon;
use crate::{absent, cache, destaging, forget, sys};

/// Descriptors that are not for files: pool, sockets, connections, clients.
const RESERVED: u64 = 256;

/// Files that can be managed at a time: each takes an entry and two descriptors.
pub(crate) fn capacity(pool: &Pool, cache: Option<&Zone>) -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // The block cache has one for each of its files, a third of all at most.
    let for_cache = if cache.is_some() { cache::capacity() as u64 } else { 0 };
    let files = descriptors.saturating_sub(RESERVED + for_cache) / 2;
    files.clamp(1, u64::from(pool.superblock.files)) as usize
}

/// True if every entry has a file.
pub(crate) fn is_full(daemon: &Daemon) -> bool {
    daemon.files.count() >= capacity(&daemon.pool, daemon.cache.as_ref())
}

/// True if one more file can be managed, after an eviction if need be.
pub(crate) fn has_room(daemon: &Daemon) -> bool {
    if !is_full(daemon) || daemon.crowding.try_again(|| make_room(daemon)) {
        return true;
    }
    daemon.crowding.count_turned_away();
    let capacity = capacity(&daemon.pool, daemon.cache.as_ref());
    daemon.log.say_once(
        "crowded",
        format!(
            "all {capacity} files that can be managed are in use: other files are left to the kernel, and \
             their fsyncs are real. A larger pool manages more files (4096 from 1 GiB on), and so does a \
             higher limit of open files"
        ),
    );
    false
}

/// Evicts one file.
pub(crate) fn make_room(daemon: &Daemon) -> bool {
    let engine = &daemon.engine;
    let price = |slot: Slot<'_>| Some((engine.eviction_price(slot)?, slot.number()));
    let idle = || {
        let mut idle: Vec<_> = engine.slots().filter_map(price).collect();
        idle.sort_unstable();
        idle
    };
    let mut all = idle();
    let must_sync = all.first().is_some_and(|((is_live, _), _)| *is_live);
    if must_sync && destaging::directories(daemon) {
        // A program that makes many directories would wait for a sync at each of them.
        all = idle();
    }
    all.into_iter().any(|(_, slot)| evict(daemon, slot))
}

/// Takes the entry of one file away, if nobody can write it. The caller has the turn of `registering`.
pub(crate) fn evict(daemon: &Daemon, slot: u32) -> bool {
    let Some(managed) = daemon.files.get(slot) else { return false };
    if absent::remove(daemon, &managed) {
        forget::forget(daemon, slot);
        return true;
    }
    // There are no leases of directories, and no descriptor by which one is written: each change of a name enters it anew, or
    // finds that the log knows it no more.
    if !managed.is_directory && !sys::lease(managed.file.as_fd(), F_RDLCK) {
        return false;
    }
    let gone = daemon.engine.evict(daemon.me(), managed.reference, || real_sync(&managed));
    if gone {
        forget::strike_out(daemon, slot, (managed.dev, managed.ino));
        daemon.crowding.count_evicted();
        if managed.is_directory {
            daemon.crowding.note_gone((managed.dev, managed.ino));
        }
    }
    if !managed.is_directory {
        sys::lease(managed.file.as_fd(), F_UNLCK);
    }
    gone
}
