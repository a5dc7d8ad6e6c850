//! Start: the log is recovered, or taken over alive. Nothing else happens before.
//!
//! | run-time memory of this boot | clients that live | what is done |
//! |---|---|---|
//! | none | – | recover (replays after a crash of the machine, else only syncs) |
//! | found | none | finish what the dead left half done, then recover; replay if a sync had failed |
//! | found | some | take over: files found again, the dead reaped, clients never notice |

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Acquire};
use std::time::Instant;

use seawall_core::file::{KeptOut, Slot};
use seawall_core::pool::{MEMORY, Pool, PoolError};
use seawall_core::recover::{self, Mode, Options, Report};
use seawall_core::table::RootEntry;
use seawall_core::{Engine, FileRef, table, takeover};
use serde::Serialize;

use crate::errors::DaemonError;
use crate::former::Former;
use crate::guard::{self, Claim, GuardError};
use crate::log::Log;
use crate::options::Options as Serving;
use crate::parts::ahead::Ahead;
use crate::parts::crowding::Crowding;
use crate::parts::files::{FileTable, Managed, reopen};
use crate::parts::fill::Fill;
use crate::parts::freeze::Freeze;
use crate::parts::guards::Guards;
use crate::parts::held_out::HeldOut;
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
use crate::state::Daemon;
use crate::{
    boot, cache, closing, forget, freeze, guarding, journal, kept, leftover, locate, outside, place, process,
    users, warden,
};

/// What `seawall recover` may do.
#[derive(Clone, Copy, Debug)]
pub struct Offline {
    /// Replay even in the boot in which the log was written.
    pub replay: bool,
    /// Give up the records of files that are gone.
    pub accept_loss: bool,
}

/// What `seawall recover` did.
#[derive(Debug, Serialize)]
pub struct Recovery {
    /// The log's part.
    #[serde(flatten)]
    pub report: Report,
    /// Guards that could not be lowered, and why.
    pub guards_left: Vec<String>,
}

/// Recovers a pool that no daemon uses, and lowers its guards.
///
/// # Errors
/// [`DaemonError`]: the log and the guards stay as they are.
pub fn recover(path: &Path, how: Offline) -> Result<Recovery, DaemonError> {
    recover_opened(path, kept::open(path)?, how)
}

/// [`recover()`], of a pool that is open.
pub(crate) fn recover_opened(
    path: &Path,
    (mut pool, kept): kept::Opened,
    how: Offline,
) -> Result<Recovery, DaemonError> {
    let log =
        Log::open(&place(path)?.log).map_err(|error| DaemonError::Place { pool: path.into(), error })?;
    let mut former = Former::without_image(&pool)?;
    if former.is_none() && takeover::is_live(Path::new(MEMORY), &pool) {
        let daemon = attach((pool, kept.clone()), log, false)?;
        let alive = users::users(&daemon);
        if !alive.is_empty() {
            release(&daemon);
            return Err(DaemonError::Alive { pids: alive });
        }
        // A forced replay stands for a machine that lost its caches: what the files hold proves nothing.
        (pool, former) = put_down(daemon, !how.replay);
    }
    let mode = if how.replay { Mode::Replay } else { Former::mode(former.as_ref()) };
    let report = close(&pool, former, Options { mode, accept_loss: how.accept_loss })?;
    let claim = Claim { uuid: pool.uuid(), pool: pool.path.clone() };
    let left = lower_all(&table::roots(&pool)?, &claim);
    let guards_left: Vec<_> = left.iter().map(ToString::to_string).collect();
    journal::leave(&pool);
    if guards_left.is_empty() {
        boot::leave(path);
    }
    Ok(Recovery { report, guards_left })
}

/// Opens a pool for serving.
pub(crate) fn start(options: &Serving) -> Result<Daemon, DaemonError> {
    let (path, keep) = (options.pool.as_path(), options.keep);
    let begin = Instant::now();
    let (mut pool, kept) = kept::open(path)?;
    let log_path = place(path)?.log;
    let cost = journal::cost(&pool, begin.elapsed());
    let notes = journal::notes(&pool);
    let log = || match Log::open(&log_path) {
        Ok(log) => {
            let log = log.with_journal(options.journal);
            cost.iter().chain(&notes).for_each(|text| log.say(text));
            Ok(log)
        }
        Err(error) => Err(DaemonError::Place { pool: path.into(), error }),
    };
    let mut former = Former::without_image(&pool)?;
    if former.is_none() && takeover::is_live(Path::new(MEMORY), &pool) {
        let mut daemon = attach((pool, kept.clone()), log()?, keep)?;
        if !users::users(&daemon).is_empty() {
            cache::take_over(&mut daemon, options.cache.as_ref());
            resume(&daemon);
            return Ok(daemon);
        }
        (pool, former) = put_down(daemon, true);
    }
    let mode = Former::mode(former.as_ref());
    let report = close(&pool, former, Options { mode, accept_loss: false })?;
    // Also when no file is registered any more: a cut may come between the last file's leave and its guard's.
    let claim = Claim { uuid: pool.uuid(), pool: pool.path.clone() };
    let left = lower_all(&table::roots(&pool)?, &claim);
    let mut daemon = attach((pool, kept), log()?, keep)?;
    // Behind the recovery: what that wrote is not what was cached.
    if let Err(e) = cache::open(&mut daemon, options.cache.as_ref()) {
        closing::forget_boot(&daemon);
        release(&daemon);
        return Err(e.into());
    }
    say_started(&daemon.log, &report, &left);
    Ok(daemon)
}

fn say_started(log: &Log, report: &Report, left: &[GuardError]) {
    log.say(format!(
        "started; {} records in the log, {} live, {} of them replayed",
        report.records,
        report.live,
        if report.replayed { report.live } else { 0 }
    ));
    left.iter().for_each(|error| log.say(error.to_string()));
}

/// Of a log that holds nothing any more; also those of older versions. What could not be lowered is returned.
fn lower_all(roots: &[(u32, RootEntry)], claim: &Claim) -> Vec<GuardError> {
    let roots = || roots.iter().map(|(_, root)| root);
    let mut places: Vec<_> = roots()
        .flat_map(|root| guard::find(root.preset, &root.data).into_iter().map(|at| (at, root.preset)))
        .collect();
    places.sort_by(|a, b| a.0.cmp(&b.0));
    places.dedup_by(|a, b| a.0 == b.0);
    let mut left: Vec<GuardError> =
        places.iter().filter_map(|(at, preset)| guard::lower(*preset, at, Some(claim)).err()).collect();
    left.extend(leftover::lower(roots(), claim));
    left
}

fn place(path: &Path) -> Result<place::Place, DaemonError> {
    place::make(path).map_err(|error| DaemonError::Place { pool: path.into(), error })
}

/// Joins pool and run-time memory, and takes a client slot.
fn attach((mut pool, kept): kept::Opened, log: Log, keep: bool) -> Result<Daemon, DaemonError> {
    let place = place(&pool.path)?;
    let started = takeover::start(&mut pool, Path::new(MEMORY))?;
    let slot = started
        .engine
        .claim_client(std::process::id(), process::now_ns())
        .ok_or(DaemonError::NoClientSlot)?;
    let roots = Roots::new(table::roots(&pool)?);
    let unlocked = reopen(&pool.file, true);
    let pool_for_clients =
        unlocked.map_err(|error| PoolError::Io { path: pool.path.clone(), doing: "reopen", error })?;
    Ok(Daemon {
        engine: started.engine,
        pool,
        lent: Lent::new(pool_for_clients, started.shm_file, started.shm_len, started.shm_path),
        kept,
        cache: None,
        without_cache: None,
        place,
        log,
        slot,
        files: FileTable::default(),
        roots,
        guards: Guards::default(),
        stillness: Stillness::default(),
        namers: Namers::default(),
        lifetime: Lifetime::new(keep),
        watch: Watch::new(),
        registering: Registering::default(),
        destaging: Mutex::default(),
        burying: Mutex::default(),
        held_out: HeldOut::default(),
        left_out: left_out::Newest::default(),
        freeze: Freeze::default(),
        refused: Refused::default(),
        requests: AtomicU64::new(0),
        crowding: Crowding::default(),
        fill: Fill::default(),
        synced: Synced::new(),
        ahead: Ahead::default(),
        rebuilding: Rebuilding::default(),
        spill: Spill::default(),
    })
}

/// Recovers, and then removes what the log was used with.
fn close(pool: &Pool, former: Option<Former>, options: Options) -> Result<Report, DaemonError> {
    let report = recover::recover(pool, options)?;
    former.map_or(Ok(()), Former::remove)?;
    Ok(report)
}

/// Gives up a run-time memory that nobody else uses.
fn put_down(daemon: Daemon, finish: bool) -> (Pool, Option<Former>) {
    if finish {
        find_files(&daemon);
        warden::bury(&daemon, &dead_slots(&daemon.engine, daemon.slot));
    }
    let former = Former::new(daemon.lent.memory_path().to_owned(), daemon.engine.shm());
    release(&daemon);
    (daemon.pool, Some(former))
}

/// Leaves the run-time memory as if this daemon had never been there.
pub(crate) fn release(daemon: &Daemon) {
    daemon.engine.release_client(daemon.slot);
    takeover::end(&daemon.engine);
}

/// Takes over a live log.
fn resume(daemon: &Daemon) {
    daemon.log.say("took over a live log");
    find_files(daemon);
    // First: whoever enters a file that a process left half written waits for this.
    warden::bury(daemon, &dead_slots(&daemon.engine, daemon.slot));
    guarding::adopt(daemon);
    freeze::end_former(daemon);
    for file in daemon.files.all() {
        daemon.engine.let_back(file.reference, KeptOut::Foreign);
        if file.is_directory {
            continue;
        }
        daemon.watch_for(&file.file, &file.current_path(), (file.dev, file.ino));
        let writers = daemon.foreign_writers(file.dev, file.ino).unwrap_or_default();
        if let Some(pid) = writers.first() {
            outside::keep_out(daemon, &file, *pid);
        }
    }
}

fn dead_slots(engine: &Engine, own: u32) -> Vec<u32> {
    let shm = engine.shm();
    let is_dead = |i: &u32| {
        shm.client(*i).is_some_and(|c| {
            let pid = c.pid().load(Acquire);
            pid != 0 && *i != own && !process::is_same(pid, c.since().load(Acquire))
        })
    };
    (0..shm.shape().clients).filter(is_dead).collect()
}

/// Opens the files of an earlier daemon again. What is gone and has nothing live is forgotten.
fn find_files(daemon: &Daemon) {
    let files = table::files(&daemon.pool).unwrap_or_default();
    for entry in files {
        let reference = FileRef { slot: entry.slot, generation: entry.generation };
        if daemon.engine.is_left_over(&entry) {
            // A daemon was killed in the middle of forgetting it.
            forget::forget(daemon, entry.slot);
            continue;
        }
        let root = daemon.roots.get(entry.root);
        let found = root.and_then(|root| locate::find(&root.path, &entry.path, &entry.identity));
        let Some((file, path)) = found else {
            lost(daemon, entry.slot, &entry.path);
            continue;
        };
        let Ok(stat) = file.metadata() else { continue };
        let Ok(destaged) = reopen(&file, false) else { continue };
        let (dev, ino) = (stat.dev(), stat.ino());
        let (root, is_directory) = (entry.root, entry.is_directory);
        daemon.files.insert(Managed { reference, root, is_directory, file, destaged, path, dev, ino });
    }
}

fn lost(daemon: &Daemon, slot: u32, hint: &Path) {
    if daemon.engine.slot(slot).is_some_and(Slot::is_dirty) {
        daemon
            .log
            .say(format!("{} was not found in its directory; its records stay in the log", hint.display()));
    } else {
        forget::forget(daemon, slot);
    }
}

/// A daemon without threads, for tests: of an empty pool that goes with the directory.
#[cfg(test)]
pub(crate) fn without_threads(dir: &tempfile::TempDir) -> Daemon {
    let pool = dir.path().join("pool");
    seawall_core::pool::create(&pool, 16 << 20, true, false).expect("a pool");
    start(&Serving { pool, keep: false, boot: false, journal: false, cache: None, watchdog: None })
        .expect("started")
}
