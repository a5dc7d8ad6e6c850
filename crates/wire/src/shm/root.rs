//! Registered directories: what is managed below them, and by which preset.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use seawall_media::Region;

use super::words;

/// Longest path of a root, in bytes.
pub const ROOT_PATH_MAX: usize = 960;

/// Which files below a root are managed, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Preset {
    /// PostgreSQL's WAL directory: the regular files directly in it.
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
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Postgres, Self::Sqlite, Self::Mariadb, Self::Redis, Self::Rocksdb, Self::Lmdb];

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
        }
    }
}

/// View of a root. Entries are only ever added while processes are attached.
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

    /// Copies the real path of the directory; returns the part of `into` that holds it.
    pub fn path<'b>(&self, into: &'b mut [u8; ROOT_PATH_MAX]) -> &'b [u8] {
        let len = (self.path_len().load(Relaxed) as usize).min(ROOT_PATH_MAX);
        self.region.read(self.at + PATH_AT, &mut into[..len]);
        &into[..len]
    }

    /// Fills an unused entry. Daemon only. False if the path is too long.
    pub fn publish(&self, preset: Preset, path: &[u8], dev: u64) -> bool {
        if path.len() > ROOT_PATH_MAX {
            return false;
        }
        self.region.store(self.at + PATH_AT, path);
        self.path_len().store(path.len() as u32, Relaxed);
        self.dev().store(dev, Relaxed);
        self.preset().store(preset as u32, Release);
        true
    }
}
