//! What every thread of the daemon shares.

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire};

use seawall_core::pool::Pool;
use seawall_core::{Engine, Errno, Owner};

use crate::ahead::Ahead;
use crate::cache::Zone;
use crate::files::{FileTable, Managed};
use crate::freeze::Freeze;
use crate::guard::Claim;
use crate::guarding::Stillness;
use crate::guards::Guards;
use crate::lifetime::Lifetime;
use crate::log::Log;
use crate::namers::Namers;
use crate::place::Place;
use crate::rebuild::Rebuilding;
use crate::refused::Refused;
use crate::roots::Roots;
use crate::watch::Watch;
use crate::{foreign, process};

/// A step of how full the log was, in percent.
pub(crate) const FILL_STEP: usize = 5;

/// A running daemon.
pub(crate) struct Daemon {
    pub engine: Engine,
    pub pool: Pool,
    /// The pool for clients: a descriptor that does not share the lock, which would outlive us in their
    /// mappings.
    pub pool_for_clients: File,
    pub shm_file: File,
    pub shm_len: u64,
    pub shm_path: PathBuf,
    /// The block cache, if there is one.
    pub cache: Option<Zone>,
    /// Why there is none though one was asked for.
    pub without_cache: Option<String>,
    pub place: Place,
    pub log: Log,
    /// The daemon's own client slot: it takes file locks like everybody else.
    pub slot: u32,
    pub files: FileTable,
    pub roots: Roots,
    /// The guards that are up, and what each protects.
    pub guards: Guards,
    /// Since when their files are still.
    pub stillness: Stillness,
    /// Who named them.
    pub namers: Namers,
    pub lifetime: Lifetime,
    pub watch: Watch,
    /// Registration, forgetting and closing exclude each other.
    pub registering: Mutex<()>,
    /// Destage rounds exclude each other: the retired LSN has one writer.
    pub destaging: Mutex<()>,
    /// Slots held out of the log because of a foreign writer.
    pub foreign: Mutex<crate::warden::Foreign>,
    /// What is out of the log for a copy or a snapshot.
    pub freeze: Freeze,
    /// Processes that speak another version.
    pub refused: Refused,
    /// Requests served.
    pub requests: AtomicU64,
    /// Files whose entry was given to another one.
    pub evicted: AtomicU64,
    /// Times that a file found no place among files that are all in use.
    pub turned_away: AtomicU64,
    /// How full the log was when rounds began that had something to do, in steps of [`FILL_STEP`] percent. Only
    /// rounds free space, so these are the peaks.
    pub fill: [AtomicU64; 100 / FILL_STEP],
    /// Files to be synced before they are used.
    pub ahead: Ahead,
    /// The rebuild of a lost copy of a mirrored log.
    pub rebuilding: Rebuilding,
    /// What goes to the area behind the pool.
    pub spill: Mutex<crate::spill::State>,
    /// Until then (nanoseconds since boot) no place is looked for.
    pub crowded_until: AtomicU64,
    /// The image in front of a journal is given up: nobody joins any more.
    pub given_up: AtomicBool,
}

impl Daemon {
    /// This thread as an owner of locks.
    pub fn me(&self) -> Owner {
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as usize;
        // Owner drops the low bits of what usually is an address.
        Owner::new(self.slot, thread << 4)
    }

    /// What guards say about this pool.
    pub fn claim(&self) -> Claim {
        Claim { uuid: self.pool.uuid(), pool: self.pool.path.clone() }
    }

    /// Process ids of the clients that live, without this daemon.
    pub fn clients(&self) -> HashSet<u32> {
        let shm = self.engine.shm();
        (0..shm.shape().clients)
            .filter(|i| *i != self.slot)
            .filter_map(|i| shm.client(i))
            .filter_map(|c| match c.pid().load(Acquire) {
                0 => None,
                pid => process::is_same(pid, c.since().load(Acquire)).then_some(pid),
            })
            .collect()
    }

    /// True for a process that claimed a slot or said Hello. Cheap; the dead may still count.
    pub fn is_client(&self, pid: u32) -> bool {
        let shm = self.engine.shm();
        (0..shm.shape().clients).filter_map(|i| shm.client(i)).any(|c| c.pid().load(Acquire) == pid)
            || self.lifetime.has_greeted(pid)
    }

    /// Processes without Seawall that have the file open for writing. `None`: the daemon ends, and nobody waits until it
    /// has looked at them all.
    pub fn foreign_writers(&self, dev: u64, ino: u64) -> Option<Vec<u32>> {
        let goes_on = |_: &u32| !self.lifetime.is_ending();
        let looked_at = self.strangers().into_iter().take_while(goes_on);
        let found = foreign::writers(dev, ino, looked_at, |pid| self.will_join(pid)).collect();
        (!self.lifetime.is_ending()).then_some(found)
    }

    /// False if no process without Seawall has the file open for writing. True also if that is not known.
    pub fn may_have_foreign_writers(&self, dev: u64, ino: u64) -> bool {
        self.foreign_writers(dev, ino).is_none_or(|found| !found.is_empty())
    }

    /// Processes that are no clients. The clients are gathered once: there are many processes on a machine. One that
    /// joins meanwhile is told by its preload.
    pub fn strangers(&self) -> Vec<u32> {
        let shm = self.engine.shm();
        let slots = (0..shm.shape().clients).filter_map(|i| shm.client(i));
        let clients: HashSet<u32> = slots.map(|c| c.pid().load(Acquire)).collect();
        let is_client = |pid: &u32| clients.contains(pid) || self.lifetime.has_greeted(*pid);
        process::all().into_iter().filter(|pid| !is_client(pid)).collect()
    }

    /// True for a process that has the preload, was not started for another daemon, and has not been told to go
    /// without, nor is with another daemon already.
    pub fn will_join(&self, pid: u32) -> bool {
        process::has_preload(pid).unwrap_or(false)
            && !self.refused.has(pid)
            && !process::belongs_elsewhere(pid, &self.place.socket)
            && !process::has_joined_another(pid, &self.shm_path)
    }

    /// Takes a file out of the log and keeps it out while `op` runs.
    pub fn without_log<R>(&self, file: &Managed, op: impl FnOnce() -> R) -> R {
        let out = self.engine.take_out(self.me(), file.reference, || real_sync(file));
        let done = op();
        out.finish(|| real_sync(file));
        done
    }
}

/// fdatasync by the daemon's own descriptor, for whoever holds the file's lock, here or in a client.
pub(crate) fn real_sync(file: &Managed) -> Result<(), Errno> {
    seawall_core::certain::fdatasync(file.file.as_fd())
}
