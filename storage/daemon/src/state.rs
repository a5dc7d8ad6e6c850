//! What every thread of the daemon shares.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Acquire};
use std::sync::{Arc, Mutex};

use seawall_core::file::{Flag, Slot};
use seawall_core::pool::Pool;
use seawall_core::{Engine, Owner, stand_in};

use crate::cache::Zone;
use crate::guard::Among;
use crate::guard::Claim;
use crate::log::Log;
use crate::parts::ahead::Ahead;
use crate::parts::crowding::Crowding;
use crate::parts::files::{FileTable, Managed, real_sync};
use crate::parts::fill::Fill;
use crate::parts::freeze::Freeze;
use crate::parts::guards::{Guards, Hand};
use crate::parts::held_out::HeldOut;
use crate::parts::kept::Kept;
use crate::parts::left_out;
use crate::parts::lent::Lent;
use crate::parts::lifetime::Lifetime;
use crate::parts::namers::Namers;
use crate::parts::rebuilding::Rebuilding;
use crate::parts::refused::Refused;
use crate::parts::registering::Registering;
use crate::parts::roots::Roots;
use crate::parts::spill::Spill;
use crate::parts::stillness::Stillness;
use crate::parts::synced::Synced;
use crate::parts::watch::Watch;
use crate::place::Place;
use crate::{foreign, process};

/// A running daemon.
pub(crate) struct Daemon {
    pub engine: Engine,
    pub pool: Pool,
    /// What clients map.
    pub lent: Lent,
    /// The keepers of the log's copies on other hosts.
    pub kept: Option<Arc<Kept>>,
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
    /// Since when what is below them is on their disks.
    pub synced: Synced,
    /// The guards that are up, and what each protects.
    pub guards: Guards,
    /// Since when their files are still.
    pub stillness: Stillness,
    /// Which processes named the directories.
    pub namers: Namers,
    pub lifetime: Lifetime,
    pub watch: Watch,
    /// Whose turn it is to register, to forget or to close.
    pub registering: Registering,
    /// Destage rounds exclude each other: the retired LSN has one writer.
    pub destaging: Mutex<()>,
    /// Whose turn it is to finish what the dead left half done.
    pub burying: Mutex<()>,
    /// Files held out of the log because of a foreign writer.
    pub held_out: HeldOut,
    /// What was to be managed and is not.
    pub left_out: left_out::Newest,
    /// What is out of the log for a copy or a snapshot.
    pub freeze: Freeze,
    /// Processes that speak another version.
    pub refused: Refused,
    /// Requests served.
    pub requests: AtomicU64,
    /// How it went when all entries for files were taken.
    pub crowding: Crowding,
    /// How full the log was when rounds began.
    pub fill: Fill,
    /// Files to be synced before they are used.
    pub ahead: Ahead,
    /// The rebuild of a lost copy of a mirrored log.
    pub rebuilding: Rebuilding,
    /// What goes to the area behind the pool.
    pub spill: Spill,
}

impl Daemon {
    /// This thread as an owner of locks.
    pub fn me(&self) -> Owner {
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as usize;
        // Owner drops the low bits of what usually is an address.
        Owner::new(self.slot, thread << 4)
    }

    /// The path by which it is known where a file's guard is. A directory that the disk may lack is guarded with the one above it.
    pub fn guarded_path(&self, file: &Managed) -> PathBuf {
        let path = file.current_path();
        if !file.is_directory {
            return path;
        }
        let is_unborn = self.engine.state(file.reference).has(Flag::UNBORN);
        match path.parent().filter(|_| is_unborn).and_then(|above| self.directory(above)) {
            Some(above) => self.guarded_path(&above),
            None => path.join(stand_in::NOTE),
        }
    }

    /// The managed directory that is at this path now.
    pub fn directory(&self, path: &Path) -> Option<Arc<Managed>> {
        let stat = rustix::fs::lstat(path).ok()?;
        self.managed(stat.st_dev, stat.st_ino).filter(|managed| managed.is_directory)
    }

    /// The managed file with this inode.
    pub fn managed(&self, dev: u64, ino: u64) -> Option<Arc<Managed>> {
        let known = self.engine.find(dev, ino)?;
        self.files.get(known.slot).filter(|managed| managed.reference == known)
    }

    /// What guards say about this pool.
    pub fn claim(&self) -> Claim {
        Claim { uuid: self.pool.uuid(), pool: self.pool.path.clone() }
    }

    /// What this daemon's guards are raised and lowered with.
    pub fn hand(&self) -> Hand<'_> {
        Hand { claim: self.claim(), among: Among::Clients(self.engine.guards()) }
    }

    /// True if the log is this host's at this moment: a guard that is lowered when it is not may be another host's.
    pub fn has_its_log(&self) -> bool {
        self.kept.is_none() || self.pool.confirm().is_ok()
    }

    /// True while too few of the log's keepers are reached, and this host goes on without: nothing new comes into the log.
    pub fn is_alone(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.is_alone())
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
    /// joins meanwhile is recognised by its preload.
    pub fn strangers(&self) -> Vec<u32> {
        let shm = self.engine.shm();
        let slots = (0..shm.shape().clients).filter_map(|i| shm.client(i));
        let clients: HashSet<u32> = slots.map(|c| c.pid().load(Acquire)).collect();
        let is_client = |pid: &u32| clients.contains(pid) || self.lifetime.has_greeted(*pid);
        process::all().filter(|pid| !is_client(pid)).collect()
    }

    /// True for a process that has the preload, was not started for another daemon, and neither goes without Seawall
    /// nor is with another daemon already.
    pub fn will_join(&self, pid: u32) -> bool {
        let is_to = || {
            process::has_preload(pid).unwrap_or(false)
                && !self.refused.has(pid)
                && !process::belongs_elsewhere(pid, &self.place.socket)
                && !process::has_joined_another(pid, self.lent.memory_path())
        };
        process::seen_whole(pid, is_to).unwrap_or(false)
    }

    /// Watches who opens a file, but for a journal that only comes to be met with its database's other files.
    pub fn watch_for(&self, file: impl AsFd, path: &Path, inode: (u64, u64)) {
        if !stand_in::is_journal_aside(path.as_os_str().as_bytes()) {
            self.watch.add(file, inode, &self.log);
        }
    }

    /// Watches a file no more, unless the log or the cache goes on needing that.
    pub fn unwatch(&self, file: impl AsFd, inode: (u64, u64)) {
        let is_managed = self.engine.find(inode.0, inode.1).is_some();
        let is_entered = self.cache.as_ref().is_some_and(|zone| zone.watches(inode.0, inode.1));
        if !is_managed && !is_entered {
            self.watch.remove(file, inode);
        }
    }

    /// Slots with something in the log and without a descriptor: of files that nobody found after a take-over.
    pub fn dirty_strays(&self) -> impl Iterator<Item = Slot<'_>> {
        self.engine.slots().filter(|slot| slot.is_dirty() && self.files.get(slot.number()).is_none())
    }

    /// Takes a file out of the log and keeps it out while `op` runs.
    pub fn without_log<R>(&self, file: &Managed, op: impl FnOnce() -> R) -> R {
        let out = self.engine.take_out(self.me(), file.reference, || real_sync(file));
        let done = op();
        out.finish(|| real_sync(file));
        done
    }
}
