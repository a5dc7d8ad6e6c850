//! Why a pool could not be made or opened, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};
use seawall_media::block::JournalError;
use seawall_media::{MapError, ProbeError};

use super::machine::MEMORY;
use crate::format::{FORMAT_VERSION, Layout, SPILL_VERSION, SuperblockError};

/// Why a pool could not be made or opened. `Display` says what to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum PoolError {
    #[error("there is no pool at {0}: make one with `seawall init {0} --size 256M`")]
    Missing(PathBuf),
    #[error(
        "{0} already exists: choose another path, or replace it with --force once `seawall verify` shows \
         that it holds no live records"
    )]
    Exists(PathBuf),
    #[error(fmt = size_text)]
    Size { path: PathBuf, size: u64 },
    #[error(
        "the pool {0} is in use by a running daemon: `seawall status --pool {0}` shows it, \
         `seawall stop --pool {0}` ends it"
    )]
    InUse(PathBuf),
    #[error(
        "{path}: {because}, so the log would not survive power loss; to use it for trials, tests and \
         measurements, pass --emulated"
    )]
    NotEmulated { path: PathBuf, because: String },
    #[error(fmt = superblock_text)]
    Superblock { path: PathBuf, error: SuperblockError },
    #[error(
        "the pool {path} was made on another host: its files are not here. Recover it on its own host, \
         or make a new pool with `seawall init --force`"
    )]
    OtherHost { path: PathBuf },
    #[error("cannot map {path}: {error:?}")]
    Map { path: PathBuf, error: MapError },
    #[error("{path}: {error}")]
    Probe { path: PathBuf, error: ProbeError },
    #[error(
        "{path}: {error}. Nothing in it can be replayed safely: restore the log if it is a copy; else restore \
         the database from a backup"
    )]
    Journal { path: PathBuf, error: JournalError },
    #[error(
        "{0} is the image of a pool whose log lies on a block device, and holds nothing that the log needs: \
         name the log instead"
    )]
    Image(PathBuf),
    #[error(
        "the device of the log {path} failed ({error}), so every sync of processes {users:?} fails: stop \
         them (everything that was acknowledged is kept), then start again. See the kernel's log for the \
         device's error"
    )]
    DeviceFailed { path: PathBuf, error: io::Error, users: Vec<u32> },
    #[error(
        "the device of the log {path} failed and still fails: {error}. Repair it and start again. If it is \
         lost: the files are complete in memory, so do not restart this machine until `sync` has written \
         them to their disks; then move the log away, and remove the guards with \
         `seawall recover --abandon DIRECTORY`"
    )]
    DeviceDead { path: PathBuf, error: JournalError },
    #[error(
        "{0} exists and is not a Seawall log: choose another path or, if it is a device that may be \
         overwritten, use `seawall init --block {0}`"
    )]
    NotALog(PathBuf),
    #[error(
        "{path} cannot be a log on a block device: {because}. Choose a file on a disk, or a disk or partition"
    )]
    NotBlock { path: PathBuf, because: String },
    #[error(
        "{path} is in use or not empty ({by}), and nothing was changed: if it may be overwritten, unmount it \
         and pass --force (`seawall init --block` makes a log)"
    )]
    UsedDevice { path: PathBuf, by: &'static str },
    #[error(
        "the memory of the log {path} was removed while processes {pids:?} still use it: stop them, then start \
         again"
    )]
    Orphans { path: PathBuf, pids: Vec<u32> },
    #[error("the mirror of the log {path}: {why}")]
    Mirror { path: PathBuf, why: String },
    #[error(
        "the log {path} is mirrored on {other}, which is missing ({why}) and may hold more: bring it back. \
         If it is lost for good, and was never in use without {path}, use \
         `seawall mirror --alone --pool {path}`"
    )]
    MirrorMissing { path: PathBuf, other: PathBuf, why: String },
    #[error(
        "the copy {path} of a mirrored log is incomplete, because making it was interrupted: bring back \
         {other}, from which it was made"
    )]
    MirrorUnfinished { path: PathBuf, other: PathBuf },
    #[error(
        "the two copies of the log, {path} and {other}, each went on without the other, so neither holds \
         everything: choose the one that the database used last, and move the other one away"
    )]
    MirrorSplit { path: PathBuf, other: PathBuf },
    #[error("{path}: {why}. Start with the other copy: --pool {other}")]
    MirrorLost { path: PathBuf, other: PathBuf, why: String },
    #[error(
        "the description of the spill area in the pool {0} is damaged, and a part of the log may be in the \
         area. Restore the pool if it is a copy; else restore the database from a backup"
    )]
    SpillZone(PathBuf),
    #[error("{path}: a spill area behind a pool of this size may have {} to {} MiB: choose another --spill-size, or a \
         larger pool", .least.div_ceil(1 << 20), .most >> 20)]
    SpillSize { path: PathBuf, least: u64, most: u64 },
    #[error("the pool {path}: {why}")]
    Spill { path: PathBuf, why: String },
    #[error("cannot make the spill area {path}: {error}. Name a file that does not exist yet, on a disk")]
    SpillPath { path: PathBuf, error: io::Error },
    #[error(fmt = room_text)]
    NoRoom { path: PathBuf, bytes: u64, error: io::Error },
    #[error(fmt = io_text)]
    Io { path: PathBuf, doing: &'static str, error: io::Error },
}

/// The file is longer than this process's limit allows.
pub(crate) fn is_limit(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::FileTooLarge
}

/// The text about that limit.
pub(crate) struct LimitText;

impl fmt::Display for LimitText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kib = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX) >> 10;
        write!(
            f,
            "the file would exceed the limit on file sizes (ulimit -f is {kib} KiB): raise the limit, or ask \
             for less with --size"
        )
    }
}

fn size_text(path: &Path, size: &u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (too, end, limit, unit) = match *size > Layout::MAX_SIZE {
        true => ("many", "largest", Layout::MAX_SIZE, "128T"),
        false => ("few", "smallest", Layout::MIN_SIZE, "16M"),
    };
    write!(f, "{}: {size} bytes are too {too} for a pool; the {end} is {limit} ({unit})", path.display())
}

fn room_text(path: &Path, bytes: &u64, error: &io::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if is_limit(error) {
        return write!(f, "{}: {}", path.display(), LimitText);
    }
    write!(f, "{} has no room for {} MiB: {error}. Make room", path.display(), bytes.div_ceil(1 << 20))?;
    f.write_str(if path == Path::new(MEMORY) { " there (in a container: --shm-size)" } else { "" })?;
    f.write_str(", or ask for less with --size")
}

fn io_text(path: &Path, doing: &str, error: &io::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match is_limit(error) {
        true => write!(f, "{}: {}", path.display(), LimitText),
        false => write!(f, "cannot {doing} {}: {error}", path.display()),
    }
}

fn superblock_text(path: &Path, error: &SuperblockError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let p = path.display();
    match *error {
        SuperblockError::NotAPool => write!(f, "{p} is not a Seawall pool: check the path"),
        SuperblockError::Version(found) => write!(
            f,
            "the pool {p} has format version {found}, and this program knows only {FORMAT_VERSION} and \
             {SPILL_VERSION}: recover it with the version that made it"
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

impl PoolError {
    /// True if this user lacks permission to make it there.
    pub fn is_denied(&self) -> bool {
        match self {
            Self::Io { error, .. } | Self::NoRoom { error, .. } | Self::SpillPath { error, .. } => {
                error.kind() == io::ErrorKind::PermissionDenied
            }
            _ => false,
        }
    }
}
