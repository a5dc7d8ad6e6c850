//! Why a pool could not be made or opened, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};
use seawall_media::block::JournalError;
use seawall_media::{MapError, ProbeError};

use crate::format::{FORMAT_VERSION, Layout, SPILL_VERSION, SuperblockError};

/// Why a pool could not be made or opened. `Display` says what to do.
#[derive(Debug)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum PoolError {
    Missing(PathBuf),
    Exists(PathBuf),
    Size { path: PathBuf, size: u64 },
    InUse(PathBuf),
    NotEmulated { path: PathBuf, because: String },
    Superblock { path: PathBuf, error: SuperblockError },
    OtherHost { path: PathBuf },
    Map { path: PathBuf, error: MapError },
    Probe { path: PathBuf, error: ProbeError },
    Journal { path: PathBuf, error: JournalError },
    Image(PathBuf),
    DeviceFailed { path: PathBuf, error: io::Error, users: Vec<u32> },
    DeviceDead { path: PathBuf, error: JournalError },
    NotALog(PathBuf),
    NotBlock { path: PathBuf, because: String },
    UsedDevice { path: PathBuf, by: &'static str },
    Orphans { path: PathBuf, pids: Vec<u32> },
    Mirror { path: PathBuf, why: String },
    MirrorMissing { path: PathBuf, other: PathBuf, why: String },
    MirrorUnfinished { path: PathBuf, other: PathBuf },
    MirrorSplit { path: PathBuf, other: PathBuf },
    MirrorLost { path: PathBuf, other: PathBuf, why: String },
    SpillZone(PathBuf),
    SpillSize { path: PathBuf, least: u64, most: u64 },
    Spill { path: PathBuf, why: String },
    SpillPath { path: PathBuf, error: io::Error },
    NoRoom { path: PathBuf, bytes: u64, error: io::Error },
    Io { path: PathBuf, doing: &'static str, error: io::Error },
}

impl std::fmt::Display for PoolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(p) => write!(
                f,
                "there is no pool at {}: make one with `seawall init {} --size 256M`",
                p.display(),
                p.display()
            ),
            Self::Exists(p) => write!(
                f,
                "{} exists already: choose another path, or replace it with --force once `seawall verify` \
                 shows that it holds no live records",
                p.display()
            ),
            Self::Size { path, size } if *size > Layout::MAX_SIZE => write!(
                f,
                "{}: {size} bytes are too many for a pool; the largest is {} (128T)",
                path.display(),
                Layout::MAX_SIZE
            ),
            Self::Size { path, size } => write!(
                f,
                "{}: {size} bytes are too few for a pool; the smallest is {} (16M)",
                path.display(),
                Layout::MIN_SIZE
            ),
            Self::InUse(p) => write!(
                f,
                "the pool {} is in use by a living daemon: `seawall status --pool {0}` shows it, \
                 `seawall stop --pool {0}` ends it",
                p.display()
            ),
            Self::NotEmulated { path, because } => write!(
                f,
                "{}: {because}, so it would not survive power loss; for trying, testing and measuring, ask \
                 for it by name: --emulated",
                path.display()
            ),
            Self::Superblock { path, error } => superblock_text(f, path, *error),
            Self::OtherHost { path } => write!(
                f,
                "the pool {} was made on another host: its files are not here. Recover it on its own host, \
                 or make a new pool with `seawall init --force`",
                path.display()
            ),
            Self::Map { path, error } => write!(f, "{} cannot be mapped: {error:?}", path.display()),
            Self::Journal { path, error } => write!(
                f,
                "{}: {error}. Nothing in it can be replayed safely: restore the log if it is a copy; else restore \
                 the database from a backup",
                path.display()
            ),
            Self::Probe { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Image(p) => write!(
                f,
                "{} is the image of a pool whose log lies on a block device, and holds only what that log does not \
                 need: name the log instead",
                p.display()
            ),
            Self::DeviceFailed { path, error, users } => write!(
                f,
                "the device of the log {} failed ({error}), so every sync of processes {users:?} fails: stop them \
                 (what was acknowledged is kept), then start again. See the kernel's log for the device's error",
                path.display()
            ),
            Self::DeviceDead { path, error } => write!(
                f,
                "the device of the log {} failed, and still does: {error}. Repair it and start again. If it is \
                 lost: the files are whole in memory, so do not restart this machine before `sync` brought them to \
                 their disks; then move the log away, and `seawall recover --abandon DIRECTORY` removes the guards",
                path.display()
            ),
            Self::SpillZone(p) => write!(
                f,
                "what the pool {} says about its spill area is damaged, and a part of the log may be there. Restore the \
                 pool if it is a copy; else restore the database from a backup",
                p.display()
            ),
            Self::SpillSize { path, least, most } => write!(
                f,
                "{}: a spill area behind a pool of this size may have {} to {} MiB: choose another --spill-size, or a \
                 larger pool",
                path.display(),
                least.div_ceil(1 << 20),
                most >> 20
            ),
            Self::Spill { path, why } => write!(f, "the pool {}: {why}", path.display()),
            Self::SpillPath { path, error } => write!(
                f,
                "the spill area {} cannot be made: {error}. Name a file that does not exist yet, on a disk",
                path.display()
            ),
            Self::NotALog(p) => write!(
                f,
                "{0} exists and is no Seawall log: choose another path, or, if it is a device that may be \
                 overwritten, `seawall init --block {0}`",
                p.display()
            ),
            Self::NotBlock { path, because } => write!(
                f,
                "{} cannot be a log on a block device: {because}. Choose a file on a disk, or a disk or partition",
                path.display()
            ),
            Self::UsedDevice { path, by } => write!(
                f,
                "{} is in use or holds something ({by}), and nothing was changed: if it may be overwritten, unmount \
                 it and say so with --force (a log is made by `seawall init --block`)",
                path.display()
            ),
            Self::Orphans { path, pids } => write!(
                f,
                "the memory of the log {} was removed while processes {pids:?} still use it: stop them, then start \
                 again",
                path.display()
            ),
            Self::Mirror { path, why } => write!(f, "the mirror of the log {}: {why}", path.display()),
            Self::MirrorMissing { path, other, why } => write!(
                f,
                "the log {0} is mirrored on {1}, which is not there ({why}) and may hold more: bring it back. If it is \
                 lost for good, and it was not in use without {0} before: `seawall mirror --alone --pool {0}`",
                path.display(),
                other.display()
            ),
            Self::MirrorUnfinished { path, other } => write!(
                f,
                "the copy {} of a mirrored log was not whole yet when its making was cut short: bring back {}, from \
                 which it was made",
                path.display(),
                other.display()
            ),
            Self::MirrorSplit { path, other } => write!(
                f,
                "both copies of the log, {} and {}, went on without the other one, so neither holds everything: \
                 choose the one that the database was last used with, and move the other one away",
                path.display(),
                other.display()
            ),
            Self::MirrorLost { path, other, why } => {
                write!(f, "{}: {why}. Start with that copy: --pool {}", path.display(), other.display())
            }
            Self::NoRoom { path, error, .. } | Self::Io { path, error, .. } if is_limit(error) => {
                write!(f, "{}: {}", path.display(), LimitText)
            }
            Self::NoRoom { path, bytes, error } if path == Path::new(super::MEMORY) => write!(
                f,
                "{} has no room for {} MiB: {error}. Make room there (in a container: --shm-size), or ask for less with \
                 --size",
                path.display(),
                bytes.div_ceil(1 << 20)
            ),
            Self::NoRoom { path, bytes, error } => write!(
                f,
                "{} has no room for {} MiB: {error}. Make room, or ask for less with --size",
                path.display(),
                bytes.div_ceil(1 << 20)
            ),
            Self::Io { path, doing, error } => write!(f, "{doing} {}: {error}", path.display()),
        }
    }
}

/// The file is longer than this process may make one.
pub(crate) fn is_limit(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::FileTooLarge
}

/// What is said of it.
pub(crate) struct LimitText;

impl std::fmt::Display for LimitText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kib = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX) >> 10;
        write!(
            f,
            "no file may become so long (ulimit -f is {kib} KiB): raise the limit, or ask for less with --size"
        )
    }
}

fn superblock_text(f: &mut std::fmt::Formatter<'_>, path: &Path, error: SuperblockError) -> std::fmt::Result {
    let p = path.display();
    match error {
        SuperblockError::NotAPool => write!(f, "{p} is not a Seawall pool: check the path"),
        SuperblockError::Version(found) => write!(
            f,
            "the pool {p} has format version {found}, this program knows {FORMAT_VERSION} and {SPILL_VERSION}: recover it with \
             the version that made it"
        ),
        SuperblockError::Damaged => write!(
            f,
            "both superblocks of the pool {p} are damaged: nothing in it can be trusted. Restore the \
             database from a backup; `seawall inspect {p}` shows what is left"
        ),
        SuperblockError::Geometry { expected, found } => write!(
            f,
            "the pool {p} has {found} bytes where {expected} are expected: it was truncated or its \
             superblock is damaged. Restore the whole file"
        ),
    }
}

impl std::error::Error for PoolError {}

impl PoolError {
    /// True if this user may not make it there.
    pub fn is_denied(&self) -> bool {
        match self {
            Self::Io { error, .. } | Self::NoRoom { error, .. } | Self::SpillPath { error, .. } => {
                error.kind() == io::ErrorKind::PermissionDenied
            }
            _ => false,
        }
    }
}
