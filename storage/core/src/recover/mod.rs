//! Recover: after a crash of the machine, records are replayed into the real files.
//!
//! ```text
//! scan      every segment, every record                     reads only
//! plan      what directories must be, by their records      reads only
//! resolve   each file with live records, by its identity    reads only
//! names     directories are brought to that state           may be cut anywhere
//! replay    in LSN order, then fsync                        may be cut anywhere: nothing is retired yet
//! close     retired LSN raised, file table emptied          from here on there is nothing to replay
//! ```
//!
//! Everything is read, and every reason to refuse found, before anything is written. Recovery is idempotent:
//! until `close`, a second run does the same again. In the boot in which the log was written nothing is
//! replayed at all: the page cache holds every published write, so the files are only synced.
//!
//! Which fate each record has, and why, is in [`fate`]: a decision table.
//!
//! Not handled here: guards (the daemon lowers them after success), half-done writes of processes that died
//! while the machine lived (`reap`).

mod alone;
mod begun;
mod below;
mod dropped;
mod fate;
mod ground;
mod names;
mod replay;
mod report;
mod resolve;
mod scan;
mod since_boot;
mod target;
mod unresolved;

use std::collections::BTreeMap;

use rustix::io::Errno;

use crate::pool::Pool;
use crate::table::{self, RootEntry, TableError};

pub use alone::AloneMark;
pub use fate::Fate;
pub use names::RealDirectory;
pub use report::{Mode, Options, RecoverError, Report};
pub use resolve::Directories;
pub use scan::{Damage, Found, Scan, scan};
pub use target::{At, Here, Locate, Look, NameSpace, Sink, Target, Unwritable};
pub use unresolved::Unresolved;

use ground::Ground;

/// Recovers a pool that no daemon uses. After success its log holds nothing live.
///
/// # Errors
/// [`RecoverError`]: the log is kept as it was.
pub fn recover(pool: &Pool, options: Options) -> Result<Report, RecoverError> {
    recover_into(pool, options, &Directories::of(pool))
}

/// [`recover`], with the files found by `locate`.
///
/// # Errors
/// As for [`recover`].
pub fn recover_into(pool: &Pool, options: Options, locate: &impl Locate) -> Result<Report, RecoverError> {
    let roots: BTreeMap<u32, _> = table::roots(pool)?.into_iter().collect();
    let files: BTreeMap<u32, _> = table::files(pool)?.into_iter().map(|f| (f.slot, f)).collect();
    let scan = scan(pool, &files);
    if let Some(missing) = area_missing(pool, &scan) {
        return Err(missing);
    }
    if !scan.damage.is_empty() {
        return Err(RecoverError::Damaged(scan.damage));
    }
    let replayed = options.replays(pool);
    let mut report = Report {
        replayed,
        records: scan.records,
        torn: scan.torn,
        last_lsn: scan.last_lsn,
        ..Report::default()
    };
    let ground = Ground { pool, locate, scan: &scan, roots: &roots, files: &files, options };
    let names = names::Names::of(&ground, &mut report)?;
    let mut targets = resolve::all(&ground, &names, &mut report)?;
    if replayed && !(targets.is_empty() && names.is_empty()) {
        locate.begin().map_err(|(file, error)| RecoverError::Io {
            file,
            doing: "record the start of the replay in",
            error,
        })?;
        names.replay(pool, &scan, &mut report)?;
        targets.open_again(&ground, &names)?;
        replay::replay(pool, &scan, &targets.found, &mut report)?;
    }
    names.sync(replayed)?;
    replay::sync(&targets.found)?;
    close(pool, &scan).map_err(TableError::from)?;
    names.end();
    locate.end();
    Ok(report)
}

/// What a replay with these directories, by their indices, would find: records that could not be put where they belong
/// are in `given_up`. Changes nothing.
///
/// # Errors
/// [`RecoverError`]: nothing at all could be replayed.
pub fn preview(pool: &Pool, roots: &BTreeMap<u32, RootEntry>) -> Result<Report, RecoverError> {
    let files: BTreeMap<u32, _> = table::files(pool)?.into_iter().map(|f| (f.slot, f)).collect();
    let scan = scan(pool, &files);
    if let [_, ..] = scan.damage.as_slice() {
        return Err(RecoverError::Damaged(scan.damage));
    }
    let mut report = Report { records: scan.records, torn: scan.torn, ..Report::default() };
    report.live = scan.live.len() as u64;
    let options = Options { mode: Mode::Replay, accept_loss: true };
    let locate = Directories::of(pool);
    let ground = Ground { pool, locate: &locate, scan: &scan, roots, files: &files, options };
    let names = names::Names::of(&ground, &mut report)?;
    resolve::all(&ground, &names, &mut report)?;
    Ok(report)
}

/// The missing area may be all that is wrong, and something can be done about it.
fn area_missing(pool: &Pool, scan: &Scan) -> Option<RecoverError> {
    let area = pool.area.as_ref()?;
    let why = area.trouble()?.to_owned();
    let segments = scan.damage.iter().find_map(|damage| match damage {
        Damage::Area { segments } => Some(*segments),
        _ => None,
    })?;
    Some(RecoverError::Area { path: area.path().into(), why, segments })
}

/// True if the log's end was recorded already.
fn is_empty(pool: &Pool, scan: &Scan) -> bool {
    let is_retired = pool.retired().load(&pool.region) == Some(scan.last_lsn);
    is_retired && table::files(pool).is_ok_and(|files| files.is_empty())
}

/// Ends the log's life: everything in it is on disk. The order does not matter, since the retired LSN alone already
/// shows it; the table is emptied so that files are registered anew.
fn close(pool: &Pool, scan: &Scan) -> Result<(), Errno> {
    let change = || {
        pool.retired().raise(&pool.region, scan.last_lsn);
        table::forget_all(pool);
    };
    match pool.region.journal() {
        None => change(),
        Some(journal) if journal.is_closed(&pool.region) && is_empty(pool, scan) => {}
        Some(journal) => journal.close(&pool.region, pool.layout(), change)?,
    }
    Ok(())
}
