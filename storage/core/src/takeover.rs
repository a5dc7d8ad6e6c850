//! Start of a daemon: the run-time memory is found and taken over, or made.
//!
//! | memory of this pool and boot | a process has the pool mapped | what is done |
//! |---|---|---|
//! | found | any | taken over: clients never notice |
//! | none | no | made; the log was recovered before |
//! | none | yes | refused: those processes write to a log that nobody would read |

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use seawall_media::Region;
use seawall_stats::Clock;
use seawall_wire::shm::{Header, Shape, Shm};

use crate::destage::count_free;
use crate::file::BORN;
use crate::format::ROOTS;
use crate::pool::{self, Pool, mapped_by_others, open_own};
use crate::{AttachError, Engine};

/// A started engine.
pub struct Started {
    /// The engine.
    pub engine: Engine,
    /// The run-time memory's file, to be handed to clients.
    pub shm_file: File,
    /// Its length.
    pub shm_len: u64,
    /// Where it is.
    pub shm_path: PathBuf,
    /// True if it was taken over from an earlier daemon of this boot.
    pub taken_over: bool,
}

/// Why no engine was started.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum StartError {
    #[error(fmt = memory)]
    Io { path: PathBuf, error: io::Error },
    #[error("run-time memory {path}: {error:?}")]
    Map { path: PathBuf, error: seawall_media::MapError },
    #[error("the pool and the run-time memory do not belong together: {0:?}")]
    Attach(AttachError),
    #[error(
        "cannot write to the log's device: {0}. Everything that was acknowledged is kept: see the kernel's \
         log, repair the device, and start again"
    )]
    Device(io::Error),
    #[error(
        "the run-time memory is gone while processes {0:?} still write to the log: stop them, \
         then start again"
    )]
    Orphans(Vec<u32>),
    #[error("the log has not been recovered: run `seawall recover`")]
    NotRecovered,
}

/// The text about run-time memory that is not available.
fn memory(path: &Path, error: &io::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "run-time memory {}: ", path.display())?;
    if is_full(error) {
        write!(f, "{error}. Make room there (in a container: --shm-size), or take a smaller log with --size")
    } else if pool::is_limit(error) {
        write!(f, "{}", pool::LimitText)
    } else {
        write!(f, "{error}")
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Bytes of the run-time memory of a pool of this size. `None`: no pool has that size.
pub fn bytes_for(size: u64) -> Option<u64> {
    let layout = crate::format::Layout::for_size(size)?;
    Shape::for_pool(layout.segments, layout.files, ROOTS).total_bytes().map(|bytes| bytes as u64)
}

/// The run-time memory's path for a pool.
pub fn shm_path(dir: &Path, pool: &Pool) -> PathBuf {
    dir.join(format!("seawall-{:032x}.rt", pool.uuid()))
}

/// True if an earlier daemon of this boot left its memory: then the log is live and is taken over, not recovered.
pub fn is_live(dir: &Path, pool: &Pool) -> bool {
    open_existing(&shm_path(dir, pool), pool).is_ok_and(|found| found.is_some())
}

/// The run-time memory of a pool whose image is gone: it cannot be taken over, but it shows which processes live and
/// which syncs failed.
///
/// # Errors
/// [`StartError`].
pub fn left_behind(dir: &Path, pool: &Pool) -> Result<Option<Shm>, StartError> {
    let path = shm_path(dir, pool);
    let failed = |error| StartError::Io { path: path.clone(), error };
    let Some(file) = open_existing(&path, pool).map_err(failed)? else { return Ok(None) };
    let len = file.metadata().map_err(failed)?.len();
    open_shm(&file, &path, len).map(Some)
}

/// Takes over or makes the run-time memory in `dir`. Without one to take over, the log must have been
/// recovered (its table emptied).
///
/// # Errors
/// [`StartError`].
pub fn start(pool: &mut Pool, dir: &Path) -> Result<Started, StartError> {
    let path = shm_path(dir, pool);
    let failed = |error| StartError::Io { path: path.clone(), error };
    let existing = open_existing(&path, pool).map_err(failed)?;
    let taken_over = existing.is_some();
    let file = match existing {
        Some(file) => file,
        None => make(&path, pool)?,
    };
    let shm_len = file.metadata().map_err(failed)?.len();
    let shm = open_shm(&file, &path, shm_len)?;
    let store = pool.store().map_err(|e| failed(io::Error::other(e)))?;
    let engine = Engine::attach(store, shm).map_err(StartError::Attach)?;
    engine.make_room();
    crate::spill::inherit(&engine);
    // This comes before anybody gets what is needed to write a record.
    pool.mark_boot().map_err(StartError::Device)?;
    let header = engine.shm().header();
    header.daemon_pid().store(std::process::id(), SeqCst);
    header.daemon_epoch().fetch_add(1, SeqCst);
    header.free_segments().store(count_free(&engine), Relaxed);
    Ok(Started { engine, shm_file: file, shm_len, shm_path: path, taken_over })
}

fn open_shm(file: &File, path: &Path, len: u64) -> Result<Shm, StartError> {
    let region =
        Region::map(file, len, false).map_err(|error| StartError::Map { path: path.into(), error })?;
    Shm::open(region).map_err(|_| StartError::Attach(AttachError::Foreign))
}

fn open_existing(path: &Path, pool: &Pool) -> io::Result<Option<File>> {
    let Some((file, len)) = open_own(path)? else { return Ok(None) };
    if len < Header::BYTES as u64 {
        return Ok(None);
    }
    let region = Region::map(&file, len, false).map_err(|e| io::Error::other(format!("{e:?}")))?;
    Ok(Header::matches(&region, pool.uuid(), u128::from_le_bytes(pool::boot())).then_some(file))
}

fn make(path: &Path, pool: &Pool) -> Result<File, StartError> {
    let mappers = mapped_by_others(&pool.file).unwrap_or_default();
    if !mappers.is_empty() {
        return Err(StartError::Orphans(mappers));
    }
    let files = crate::table::files(pool).map_err(|_| StartError::NotRecovered)?;
    if !files.is_empty() {
        return Err(StartError::NotRecovered);
    }
    let shape = Shape::for_pool(pool.superblock.segments, pool.superblock.files, ROOTS);
    create_file(path, shape, pool).map_err(|error| StartError::Io { path: path.into(), error })
}

fn create_file(path: &Path, shape: Shape, pool: &Pool) -> io::Result<File> {
    // The name is always the same: a process that is killed here leaves one file, and not one each time. The pool's
    // lock keeps others away.
    let temporary = path.with_extension("rt-new");
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    let made = lay_out(&file, shape, pool).and_then(|()| {
        // A process that finds the memory under its name finds it complete.
        std::fs::rename(&temporary, path)
    });
    if made.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    made.map(|()| file)
}

/// Takes room for it, and fills it in.
fn lay_out(file: &File, shape: Shape, pool: &Pool) -> io::Result<()> {
    let len = shape.total_bytes().ok_or_else(|| io::Error::other("no pool has this size"))? as u64;
    file.set_len(len)?;
    rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, len)?;
    let region = Region::map(file, len, false).map_err(|e| io::Error::other(format!("{e:?}")))?;
    Header::format(&region, pool.uuid(), u128::from_le_bytes(pool::boot()), shape, Clock::calibrate());
    let shm = Shm::open(region).map_err(|_| io::Error::other("cannot open the new run-time memory"))?;
    let next = pool.retired().load(&pool.region).unwrap_or(0).max(BORN) + 1;
    shm.header().next_lsn().store(next, SeqCst);
    Ok(())
}

/// Tells clients that no daemon listens any more.
pub fn end(engine: &Engine) {
    let header = engine.shm().header();
    let me = std::process::id();
    if header.daemon_pid().load(Acquire) == me {
        header.daemon_pid().store(0, SeqCst);
    }
}
