//! What a round is going to do, all of it drawn from one seed before it begins.

use std::path::{Path, PathBuf};
use std::time::Duration;

use seawall_load::sqlite::JournalMode;
use serde::{Deserialize, Serialize};

use crate::file_system::FileSystem;
use crate::front::Front;
use crate::medium::Medium;
use crate::outside::BASE;
use fastrand::Rng;
use seawall_faulty_disk::Loss;

/// What is under load.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the databases' own names")]
pub enum Database {
    Postgres,
    Sqlite,
    Mariadb,
    Redis,
    Rocksdb,
    Lmdb,
    Etcd,
    Files,
}

/// What makes commits durable.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The database's own syncs, absorbed by Seawall's log.
    Seawall,
    /// Under `--policy atomic`, PostgreSQL without full pages in its log, MariaDB without InnoDB's doublewrite
    /// buffer: no page may be torn.
    Atomic,
    /// The same without Seawall. Proves that the cuts do tear pages; only when asked for.
    Torn,
    /// Seawall, and the log's medium is lost in the cut. Proves that it was the log that kept the commits.
    Logless,
    /// The database's own syncs, on the disk. Proves that the disk keeps what was flushed.
    Synced,
    /// Nothing (`fsync=off`, `synchronous=OFF`). Proves that the cuts do take away what was not flushed.
    Unsafe,
}

/// How the log is brought back after the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recovery {
    /// `seawall run` finds another boot id and replays by itself.
    Run,
    /// `seawall recover` does, and the database starts without Seawall.
    Recover,
    /// `seawall recover --replay`, in what seems to be the same boot.
    Forced,
}

/// What else goes wrong before the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// Nothing.
    None,
    /// The disk refuses some writes; the kernel marks the pages clean all the same, and may read them again
    /// as they were. Only when asked for: databases do not stand that without Seawall either.
    WriteErrors,
    /// The disk refuses some flushes.
    FlushErrors,
    /// The file system is full.
    Full,
    /// Seawall's daemon is killed: nothing leaves the log any more.
    DaemonKilled,
    /// A process of the database is killed.
    DatabaseKilled,
    /// The process that serves the mount is killed: everything of the database's fails.
    MountKilled,
    /// The process that serves the guest's disk is killed, and started again: the guest waits.
    DiskKilled,
}

impl Trouble {
    /// The disk refuses requests.
    pub fn is_refusal(self) -> bool {
        matches!(self, Self::WriteErrors | Self::FlushErrors)
    }
}

const JOURNALS: [JournalMode; 5] =
    [JournalMode::Wal, JournalMode::Delete, JournalMode::Wal, JournalMode::Truncate, JournalMode::Persist];

/// One round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Where all that follows comes from.
    pub seed: u64,
    /// What is under load.
    pub database: Database,
    /// What makes commits durable.
    pub side: Side,
    /// By which way writes come to the log.
    #[serde(default)]
    pub front: Front,
    /// What the log lies on.
    #[serde(default)]
    pub medium: Medium,
    /// What is on the disk.
    #[serde(default)]
    pub file_system: FileSystem,
    /// It is served as any program, by what it does and not by its files' names.
    #[serde(default)]
    pub as_any: bool,
    /// SQLite's journal mode.
    pub journal: JournalMode,
    /// The database's settings that differ from round to round.
    pub settings: Vec<(String, String)>,
    /// The pool's size in MiB.
    pub pool_mib: u64,
    /// From the first commit to the cut.
    pub cut_after: Duration,
    /// Counted from power-on instead: the machine is cut while everything starts.
    pub early: bool,
    /// What the cut takes away.
    pub loss: Loss,
    /// A second cut so long after the machine is back, in the middle of recovery or soon after it.
    pub cut_again: Option<(Duration, Loss)>,
    /// How the log is brought back.
    pub recovery: Recovery,
    /// What goes wrong before the cut.
    pub trouble: Trouble,
    /// The kernel writes pages back all the time, in no order.
    pub writeback: bool,
}

/// Draws the round with this number. The number alone decides SQLite's journal mode: few rounds shall see
/// several of them.
pub fn draw(database: Database, side: Side, front: Front, seed: u64, number: u64) -> Plan {
    let rng = &mut Rng::with_seed(seed);
    // No preload serves a static program.
    let front = if database == Database::Etcd { Front::Mount } else { front };
    let millis = |rng: &mut Rng, from: u64, to: u64| {
        Duration::from_millis(front.pace() * (from + rng.u64(..to - from)))
    };
    let plan = Plan {
        seed,
        database,
        side,
        front,
        medium: Medium::default(),
        as_any: false,
        file_system: FileSystem::default(),
        journal: JOURNALS[number as usize % JOURNALS.len()],
        settings: settings(database, rng),
        pool_mib: pick(rng, &[16, 16, 64]),
        cut_after: millis(rng, 50, 2500),
        // Of a guest's start, which takes longer than that, there is a cut in the checks.
        early: rng.u64(..100) < 8 && front != Front::Disk,
        loss: Loss::draw(rng),
        cut_again: (rng.u64(..100) < 30).then(|| {
            let soon = pick(rng, &[300, 900, 3000]);
            (millis(rng, 1, soon), Loss::draw(rng))
        }),
        recovery: pick(rng, &[Recovery::Run, Recovery::Run, Recovery::Recover, Recovery::Forced]),
        trouble: match rng.u64(..11) {
            1..=3 if front == Front::Disk && side.is_logged() => Trouble::DiskKilled,
            4..=5 if front == Front::Disk && side.is_logged() => Trouble::DaemonKilled,
            // A guest's file system goes no further after its disk's first error.
            _ if front == Front::Disk => Trouble::None,
            1 => Trouble::FlushErrors,
            2 => Trouble::Full,
            3 => Trouble::DatabaseKilled,
            4 if side.is_logged() => Trouble::DaemonKilled,
            5 if side.is_logged() && front == Front::Mount => Trouble::MountKilled,
            _ => Trouble::None,
        },
        writeback: rng.u64(..100) < 60,
    };
    match side {
        Side::Torn => Plan { loss: Loss::Sectors(50), writeback: true, ..plan.plain() },
        side if side.must_lose() => plan.plain(),
        _ => plan,
    }
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.usize(..from.len())]
}

/// How an embedded store is opened.
const OPENED: &str = "opened";

/// Ways to write the log: each takes other system calls.
fn settings(database: Database, rng: &mut Rng) -> Vec<(String, String)> {
    let mut set = |name: &str, values: &[&str]| (name.to_owned(), pick(rng, values).to_owned());
    match database {
        Database::Postgres => vec![
            set("wal_sync_method", &["fdatasync", "fdatasync", "fsync", "open_datasync"]),
            set("wal_recycle", &["on", "on", "off"]),
            set("wal_init_zero", &["on", "on", "off"]),
            set("max_wal_size", &["8MB", "32MB", "128MB"]),
        ],
        Database::Redis => vec![set("aof-use-rdb-preamble", &["yes", "no"])],
        Database::Rocksdb => vec![set(OPENED, &["", "direct", "recycle", "direct recycle", "mmap"])],
        Database::Lmdb => vec![set(OPENED, &["", "writemap"])],
        Database::Sqlite | Database::Mariadb | Database::Etcd | Database::Files => Vec::new(),
    }
}

impl Side {
    /// Commits must be gone after a cut.
    pub fn must_lose(self) -> bool {
        matches!(self, Side::Unsafe | Side::Logless)
    }

    /// Its rounds may end in any way: they are there to show what goes wrong.
    pub fn is_control(self) -> bool {
        self.must_lose() || self == Side::Torn
    }

    /// The database runs under Seawall before the cut.
    pub fn is_under_seawall(self) -> bool {
        self.is_logged() || self == Side::Logless
    }

    /// The database runs under Seawall, and its log is kept.
    pub fn is_logged(self) -> bool {
        matches!(self, Side::Seawall | Side::Atomic)
    }

    /// The database protects no page by a copy: no full pages in PostgreSQL's log, no doublewrite buffer of
    /// InnoDB's.
    pub fn is_without_copies(self) -> bool {
        matches!(self, Side::Atomic | Side::Torn)
    }

    /// This side is there for this database by this front.
    ///
    /// In a guest no page goes without a copy: PostgreSQL's have 8 KiB, and the guest's page cache, whose pages have 4, may
    /// write one half now and the other one later.
    pub fn is_for(self, database: Database, front: Front) -> bool {
        let has_copies = matches!(database, Database::Postgres | Database::Mariadb) && front != Front::Disk;
        // etcd 3.4 has no option to leave its syncs out.
        let can_be_unsafe = database != Database::Etcd;
        (has_copies || !self.is_without_copies()) && (can_be_unsafe || self != Side::Unsafe)
    }

    /// The policy that the database runs with.
    pub fn policy(self) -> &'static str {
        if self == Side::Atomic { "atomic" } else { "tail" }
    }
}

impl Plan {
    /// The trouble, if any, is none of the load's: it must go on.
    pub fn load_goes_on(&self) -> bool {
        let is_behind_a_disk = self.front == Front::Disk;
        match self.trouble {
            Trouble::None => true,
            Trouble::DaemonKilled | Trouble::DiskKilled => is_behind_a_disk,
            _ => false,
        }
    }

    /// The log: beside the machine, so that it survives, or on its disk. One for each database and side.
    pub fn pool(&self) -> PathBuf {
        self.medium.log(&self.name())
    }

    /// The ledger: beside the machine too.
    pub fn ledger(&self) -> PathBuf {
        Path::new(BASE).join(format!("ledger-{}", self.name()))
    }

    fn name(&self) -> String {
        format!("{:?}-{:?}", self.database, self.side).to_lowercase()
    }

    /// A round that is sure to lose something on a side that does: nothing stops the load before the cut,
    /// nothing brings its pages to the disk early, and the database leaves its syncs to the log (a store that
    /// writes through a mapping does not).
    fn plain(self) -> Self {
        Plan {
            journal: JournalMode::Wal,
            cut_after: self.cut_after.max(Duration::from_millis(500)),
            early: false,
            cut_again: None,
            trouble: Trouble::None,
            writeback: false,
            settings: self.settings.into_iter().filter(|(name, _)| name != OPENED).collect(),
            ..self
        }
    }

    /// What this round varies, for a person.
    pub fn title(&self) -> String {
        let first = || self.settings.first().map_or("", |(_, value)| value);
        let how = match self.database {
            Database::Postgres => first(),
            Database::Sqlite => self.journal.pragma(),
            Database::Mariadb => "redo and binlog",
            Database::Redis => &format!("preamble {}", first()),
            Database::Rocksdb => &format!("log {}", first()),
            Database::Lmdb => &format!("data {}", first()),
            Database::Etcd => "write-ahead log",
            Database::Files => "files and names",
        };
        let again = if self.cut_again.is_some() { ", cut again" } else { "" };
        let trouble = match self.trouble {
            Trouble::None => "",
            Trouble::WriteErrors => ", write errors",
            Trouble::FlushErrors => ", flush errors",
            Trouble::Full => ", full",
            Trouble::DaemonKilled => ", daemon killed",
            Trouble::DatabaseKilled => ", database killed",
            Trouble::MountKilled => ", mount killed",
            Trouble::DiskKilled => ", disk's process killed",
        };
        let early = if self.early { ", early" } else { "" };
        let writeback = if self.writeback { ", restless" } else { "" };
        let on = if self.file_system == FileSystem::Xfs { " on XFS" } else { "" };
        format!("{how}{on}, {}{writeback}{early}{trouble}{again}", self.loss.name())
    }
}
