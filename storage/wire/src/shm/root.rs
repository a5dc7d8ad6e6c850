//! Registered directories: what is managed below them, and by which preset.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use seawall_media::Region;

use crate::words::words;

/// Longest path of a root, in bytes.
pub const ROOT_PATH_MAX: usize = 960;

/// Which files below a root are managed, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Preset {
    /// A directory of PostgreSQL's: its WAL; with [`Policy::Atomic`] also PGDATA or a tablespace.
    Postgres = 1,
    /// A directory of SQLite databases.
    Sqlite = 2,
    /// A MariaDB data directory.
    Mariadb = 3,
    /// A Redis working directory.
    Redis = 4,
    /// A RocksDB database, or a directory of them.
    Rocksdb = 5,
    /// A directory of LMDB environments.
    Lmdb = 6,
    /// A data directory of etcd's, or a directory of them. Only on a mount: etcd is a static program.
    Etcd = 7,
    /// A directory of any program's: every file that is synced again and again.
    Any = 8,
    /// A directory of virtual disks' images. Only `seawall disk` has them.
    Disk = 9,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Postgres,
        Self::Sqlite,
        Self::Mariadb,
        Self::Redis,
        Self::Rocksdb,
        Self::Lmdb,
        Self::Etcd,
        Self::Any,
        Self::Disk,
    ];

    /// Those of databases and other programs, which write files by themselves.
    pub fn of_programs() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|preset| *preset != Self::Disk)
    }

    /// The preset with this number.
    pub fn from_u32(n: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| *preset as u32 == n)
    }

    /// The preset of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
            Self::Mariadb => "mariadb",
            Self::Redis => "redis",
            Self::Rocksdb => "rocksdb",
            Self::Lmdb => "lmdb",
            Self::Etcd => "etcd",
            Self::Any => "any",
            Self::Disk => "disk",
        }
    }
}

/// What is logged of a managed file, and what happens when the log is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Policy {
    /// The files that commits wait for. A full log is written around; the next fsync is real.
    #[default]
    Tail = 0,
    /// Every data file, every write: each is whole or absent after a power cut. A full log is waited for.
    Atomic = 1,
}

impl Policy {
    /// The policy with this number.
    pub const fn from_u32(n: u32) -> Option<Self> {
        match n {
            0 => Some(Self::Tail),
            1 => Some(Self::Atomic),
            _ => None,
        }
    }

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tail => "tail",
            Self::Atomic => "atomic",
        }
    }

    /// The policy of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Tail, Self::Atomic].into_iter().find(|policy| policy.name() == name)
    }
}

/// View of a root. Entries are added while processes are attached, and withdrawn while none uses them.
#[derive(Clone, Copy)]
pub struct Root<'a> {
    region: &'a Region,
    at: usize,
}

words!(Root {
    /// [`Preset`] as a number, 0 while the entry is unused.
    preset: u32 @ 0,
    /// Bytes of the path.
    path_len: u32 @ 4,
    /// st_dev of the directory.
    dev: u64 @ 8,
    /// [`Policy`] as a number.
    policy_number: u32 @ 16,
    /// Files that were registered below it.
    registered: u32 @ 20,
});

const PATH_AT: usize = 64;

impl<'a> Root<'a> {
    /// Bytes it occupies.
    pub const BYTES: usize = 1024;

    pub(crate) fn new(region: &'a Region, at: usize) -> Self {
        Self { region, at }
    }

    /// The preset, or `None` while the entry is unused.
    pub fn kind(&self) -> Option<Preset> {
        Preset::from_u32(self.preset().load(Acquire))
    }

    /// Its policy.
    pub fn policy(&self) -> Policy {
        Policy::from_u32(self.policy_number().load(Relaxed)).unwrap_or_default()
    }

    /// Copies the real path of the directory; returns the part of `into` that holds it.
    pub fn path<'b>(&self, into: &'b mut [u8; ROOT_PATH_MAX]) -> &'b [u8] {
        let len = (self.path_len().load(Relaxed) as usize).min(ROOT_PATH_MAX);
        self.region.read(self.at + PATH_AT, &mut into[..len]);
        &into[..len]
    }

    /// Fills an unused entry. Daemon only. False if the path is too long.
    pub fn publish(&self, preset: Preset, policy: Policy, path: &[u8], dev: u64) -> bool {
        if path.len() > ROOT_PATH_MAX {
            return false;
        }
        self.region.store(self.at + PATH_AT, path);
        self.path_len().store(path.len() as u32, Relaxed);
        self.dev().store(dev, Relaxed);
        self.policy_number().store(policy as u32, Relaxed);
        self.registered().store(0, Relaxed);
        self.preset().store(preset as u32, Release);
        true
    }

    /// Nothing below it is managed any more. Daemon only; no file of it may be registered.
    pub fn withdraw(&self) {
        self.preset().store(0, Release);
    }
}
