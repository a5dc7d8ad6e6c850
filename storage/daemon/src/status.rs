//! Status: what a daemon, its log and its files are doing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use seawall_core::Engine;
use seawall_core::destage::count_free;
use seawall_core::file::{Flag, State};
use seawall_stats::{Class, EVENTS, Event, Row, Summary};
use seawall_wire::shm::{ROOT_PATH_MAX, Shm, Stray};
use serde::{Deserialize, Serialize};

use crate::cache::{self, CacheStatus};
use crate::freeze::{self, FrozenStatus};
use crate::journal::{self, JournalStatus};
use crate::parts::files::Managed;
use crate::parts::kept::KeptStatus;
pub use crate::parts::left_out::LeftOut;
use crate::parts::lent::Lent;
use crate::parts::roots::{RecoveryGoal, Roots};
use crate::spill::{self, SpillStatus};
use crate::state::Daemon;
use crate::{evict, tablespaces};

/// Everything `seawall status` shows.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    /// The honest label of the medium.
    pub medium: String,
    /// Its name in one word: `pmem` or `emulated`.
    pub medium_name: String,
    /// Why we say so.
    pub because: String,
    /// Path of the pool.
    #[serde(with = "seawall_core::path_text")]
    pub pool: PathBuf,
    /// UUID of the pool.
    pub uuid: String,
    /// Bytes of the pool.
    pub size: u64,
    /// What the device was given, if the pool lies on one.
    #[serde(default)]
    pub journal: Option<JournalStatus>,
    /// The keepers of the log, if it has any.
    #[serde(default)]
    pub kept: Option<KeptStatus>,
    /// The spill area, if the pool has one.
    #[serde(default)]
    pub spill: Option<SpillStatus>,
    /// Bytes of one segment.
    pub segment_bytes: u32,
    /// Segments of the log.
    pub segments: u32,
    /// Segments that are free.
    pub segments_free: u32,
    /// Bytes of segments that are not free.
    pub backlog_bytes: u64,
    /// How full the log was when destaging began: percent, and how often it was at least that and less than the
    /// next; none that never happened.
    #[serde(default)]
    pub fill: Vec<(u32, u64)>,
    /// Files with records that are not known to be on disk.
    pub backlog_files: u32,
    /// Process id of the daemon.
    pub daemon_pid: u32,
    /// Its log file.
    #[serde(with = "seawall_core::path_text")]
    pub log: PathBuf,
    /// How foreign writers are seen: `fanotify`, `inotify` or `none`.
    pub watch: String,
    /// Processes that are attached.
    pub clients: Vec<u32>,
    /// Processes that were refused because they speak another version.
    pub refused: u32,
    /// Requests served.
    pub requests: u64,
    /// What is out of the log for a copy or a snapshot.
    #[serde(default)]
    pub frozen: Option<FrozenStatus>,
    /// Guards that are up.
    pub guards: usize,
    /// Registered directories.
    pub roots: Vec<RootStatus>,
    /// Directories that an atomic database links to and that are not managed: pages in them can tear.
    #[serde(default)]
    #[serde(with = "seawall_core::path_text::list")]
    pub not_covered: Vec<PathBuf>,
    /// A front has said that a data file was written outside the log, so its pages could tear, since a directory was added.
    #[serde(default)]
    pub torn: bool,
    /// A file that was synced without the log though by its name it is a database's: it lies elsewhere.
    #[serde(default)]
    #[serde(with = "seawall_core::path_text::option")]
    pub elsewhere: Option<PathBuf>,
    /// A file that was synced without the log, and that no preset knows.
    #[serde(default)]
    #[serde(with = "seawall_core::path_text::option")]
    pub unknown: Option<PathBuf>,
    /// The newest file that was to be managed and is not, and why.
    #[serde(default)]
    pub left_out: Option<LeftOut>,
    /// Managed files.
    pub files: Vec<FileStatus>,
    /// How many there can be at a time.
    #[serde(default)]
    pub files_max: u32,
    /// Files whose entry was given to another one.
    #[serde(default)]
    pub evicted: u64,
    /// Times that a file was left to the kernel because all that are managed were in use.
    #[serde(default)]
    pub turned_away: u64,
    /// The block cache, if there is one.
    #[serde(default)]
    pub cache: Option<CacheStatus>,
    /// Why there is none though one was asked for.
    #[serde(default)]
    pub without_cache: Option<String>,
    /// Waits, by event, over all files.
    pub events: Vec<EventStatus>,
    /// The same by class of file, those that happened.
    #[serde(default)]
    pub class_events: Vec<ClassEventStatus>,
    /// Changes when what is counted here begins again from zero.
    #[serde(default)]
    pub epoch: String,
}

/// A registered directory.
#[derive(Debug, Serialize, Deserialize)]
pub struct RootStatus {
    /// Name of its preset.
    pub preset: String,
    /// Name of its policy.
    pub policy: String,
    /// The directory.
    #[serde(with = "seawall_core::path_text")]
    pub path: PathBuf,
    /// Files that were registered below it so far.
    #[serde(default)]
    pub registered: u32,
    /// How long the recovery of its database may take, if its user said so.
    #[serde(default)]
    pub recovery: Option<RecoveryGoal>,
}

/// A managed file.
#[derive(Debug, Serialize, Deserialize)]
pub struct FileStatus {
    /// Stays the same when the file is renamed, and is never given to another one.
    #[serde(default)]
    pub id: String,
    /// The preset of its directory.
    #[serde(default)]
    pub preset: String,
    /// What the database uses it for: `log file`, `data file` …
    #[serde(default)]
    pub class: String,
    /// Where it is.
    #[serde(with = "seawall_core::path_text")]
    pub path: PathBuf,
    /// Its writes go through the log.
    pub tracked: bool,
    /// It has records that are not known to be on disk.
    pub live: bool,
    /// Why it is not tracked, or what is pending.
    pub flags: Vec<String>,
    /// The highest LSN of its records.
    pub last_lsn: u64,
    /// All its records at or below are on disk.
    pub watermark: u64,
    /// Absorbed fsyncs.
    pub absorbed: u64,
    /// Real fsyncs.
    pub real_syncs: u64,
    /// Logged writes.
    pub writes: u64,
    /// Logged bytes.
    pub bytes: u64,
    /// Writes that passed by the log.
    pub untracked_writes: u64,
    /// Every write of it is to go through the log.
    pub atomic: bool,
    /// How often it left the log.
    pub left: u64,
}

/// A wait event.
#[derive(Debug, Serialize, Deserialize)]
pub struct EventStatus {
    /// Its name.
    pub name: String,
    /// Its stage.
    pub stage: String,
    /// How many.
    pub count: u64,
    /// Mean, in nanoseconds.
    pub mean_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99 of 100 are shorter.
    pub p99_ns: u64,
    /// 999 of 1000 are shorter.
    #[serde(rename = "p99.9_ns")]
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// All of them together, in nanoseconds.
    #[serde(default)]
    pub sum_ns: u64,
    /// The histogram: the lower border of a bucket in nanoseconds, and how many were in it; no empty ones.
    #[serde(default)]
    pub buckets: Vec<(u64, u64)>,
}

/// A wait event on the files of one class.
#[derive(Debug, Serialize, Deserialize)]
pub struct ClassEventStatus {
    /// The class.
    pub class: String,
    /// Its waits.
    #[serde(flatten)]
    pub event: EventStatus,
}

pub(crate) fn status(daemon: &Daemon) -> Status {
    let (engine, pool) = (&daemon.engine, &daemon.pool);
    // In this order: the log may grow in between.
    let (shm, free, segments) = (engine.shm(), count_free(engine), engine.backed());
    let all = daemon.files.all();
    let files: Vec<_> = all.iter().filter_map(|file| file_status(engine, &daemon.roots, file)).collect();
    let mut clients: Vec<_> = daemon.clients().into_iter().collect();
    clients.sort_unstable();
    let root = |(i, r): (u32, seawall_core::table::RootEntry)| RootStatus {
        preset: r.preset.name().into(),
        policy: r.policy.name().into(),
        path: r.path,
        registered: shm.root(i).map_or(0, |slot| slot.registered().load(Relaxed)),
        recovery: daemon.roots.goal(i),
    };
    let sb = &pool.superblock;
    let count = |event| summary(shm, event, &Class::ALL).count;
    let cached = |zone| cache::status(zone, count(Event::CacheRead), count(Event::FileRead));
    Status {
        medium: pool.medium.label().into(),
        medium_name: pool.medium.name().into(),
        because: pool.because.clone(),
        pool: pool.path.clone(),
        uuid: format!("{:032x}", pool.uuid()),
        size: sb.size,
        journal: journal::status(pool, &daemon.rebuilding),
        kept: kept(daemon),
        spill: spill::status(pool, &daemon.spill),
        segment_bytes: sb.segment_bytes,
        segments,
        segments_free: free,
        backlog_bytes: u64::from(segments - free) * u64::from(sb.segment_bytes),
        fill: daemon.fill.counted(),
        backlog_files: files.iter().filter(|f| f.live).count() as u32,
        daemon_pid: std::process::id(),
        log: daemon.place.log.clone(),
        watch: daemon.watch.name().into(),
        clients,
        refused: daemon.refused.count(),
        requests: daemon.requests.load(Relaxed),
        frozen: freeze::status(&daemon.freeze, &daemon.roots),
        guards: daemon.guards.count(),
        roots: daemon.roots.in_use(shm).into_iter().map(root).collect(),
        torn: shm.header().told_torn().load(Relaxed) != 0,
        not_covered: tablespaces::missing(&daemon.roots, shm).into_iter().map(|(_, path)| path).collect(),
        elsewhere: stray(shm, Stray::Elsewhere),
        unknown: stray(shm, Stray::Unknown),
        left_out: daemon.left_out.get(),
        files,
        files_max: evict::capacity(pool, daemon.cache.as_ref()) as u32,
        evicted: daemon.crowding.evicted(),
        turned_away: daemon.crowding.turned_away(),
        cache: daemon.cache.as_ref().map(cached),
        without_cache: daemon.without_cache.clone(),
        events: events(shm),
        class_events: class_events(shm),
        epoch: epoch(shm, &daemon.lent),
    }
}

fn kept(daemon: &Daemon) -> Option<KeptStatus> {
    let image = daemon.engine.pool();
    Some(daemon.kept.as_ref()?.status(image.journal()?.desk(image)))
}

fn stray(shm: &Shm, kind: Stray) -> Option<PathBuf> {
    let mut room = [0; ROOT_PATH_MAX];
    let path = shm.header().stray(kind, &mut room)?;
    Some(OsStr::from_bytes(path).into())
}

fn file_status(engine: &Engine, roots: &Roots, file: &Managed) -> Option<FileStatus> {
    let slot = engine.file(file.reference)?;
    let (state, counted) = (slot.state(), slot.counters());
    let (last_lsn, watermark) = (slot.last_lsn(), slot.watermark());
    Some(FileStatus {
        id: format!("{}.{}", file.reference.slot, file.reference.generation),
        preset: roots.get(file.root).map(|r| r.preset.name().into()).unwrap_or_default(),
        class: slot.class().name().into(),
        path: file.current_path(),
        tracked: state.has(Flag::TRACKED),
        live: last_lsn > watermark,
        flags: flag_names(state, slot.holds()),
        last_lsn,
        watermark,
        absorbed: counted.absorbed,
        real_syncs: counted.real_syncs,
        writes: counted.writes,
        bytes: counted.bytes,
        untracked_writes: counted.untracked_writes,
        atomic: state.has(Flag::ATOMIC),
        left: counted.left,
    })
}

fn flag_names(state: State, holds: u32) -> Vec<String> {
    const NAMES: [(Flag, &str); 12] = [
        (Flag::FROZEN, "frozen"),
        (Flag::SUSPENDED, "changes wait"),
        (Flag::SYNC_NEEDED, "sync needed"),
        (Flag::FAILED, "a sync failed"),
        (Flag::STUCK, "a lock holder was lost"),
        (Flag::UNLINKED, "unlinked"),
        (Flag::ABSENT, "removed, to be made again"),
        (Flag::FOREIGN, "foreign writer"),
        (Flag::GIVEN_AWAY, "owner changed"),
        (Flag::UNGUARDED, "unguarded"),
        (Flag::LOG_FULL, "log full"),
        (Flag::ALONE, "too few keepers"),
    ];
    let set = NAMES.iter().filter(|(flag, _)| state.has(*flag)).map(|(_, name)| (*name).into());
    set.chain((holds > 0).then(|| "mapped or streamed".into())).collect()
}

fn events(shm: &Shm) -> Vec<EventStatus> {
    EVENTS.iter().map(|row| event_status(row, &summary(shm, row.event, &Class::ALL))).collect()
}

fn class_events(shm: &Shm) -> Vec<ClassEventStatus> {
    let of_class = |class: Class| {
        let event = move |row: &Row| {
            let sum = summary(shm, row.event, &[class]);
            (sum.count > 0)
                .then(|| ClassEventStatus { class: class.name().into(), event: event_status(row, &sum) })
        };
        EVENTS.iter().filter_map(event).collect::<Vec<_>>()
    };
    Class::ALL.into_iter().flat_map(of_class).collect()
}

/// All lanes' histograms, and the daemon's.
fn summary(shm: &Shm, event: Event, classes: &[Class]) -> Summary {
    let mut sum = Summary::new();
    for lane in 0..=shm.shape().lanes {
        classes.iter().for_each(|class| sum.add(shm.stats(lane), event, *class));
    }
    sum
}

fn event_status(row: &Row, sum: &Summary) -> EventStatus {
    EventStatus {
        name: row.name.into(),
        stage: row.stage.into(),
        count: sum.count,
        mean_ns: sum.sum_ns.checked_div(sum.count).unwrap_or(0),
        p50_ns: sum.quantile_ns(0.5),
        p99_ns: sum.quantile_ns(0.99),
        p999_ns: sum.quantile_ns(0.999),
        max_ns: sum.longest_ns,
        sum_ns: sum.sum_ns,
        buckets: sum.filled(),
    }
}

/// The counters live as long as the shared memory does: longer than a daemon, never longer than a boot.
fn epoch(shm: &Shm, lent: &Lent) -> String {
    let boot = shm.header().boot();
    format!("{boot:032x} {}", lent.memory_inode())
}
