//! A pool's journal, as far as the daemon has to care for it.
//!
//! Clients write it themselves. Here: what nobody syncs is hardened all the same, a moment later, so that a foreign
//! sync(2) makes little durable that the journal lacks; the image goes when the log is closed. Whoever leads the writes
//! and is stopped, or dead, is [`leader`]'s.
//!
//! Invariant: an image is removed only when nothing is registered and nobody has it, and nothing can be written to
//! the journal from it any more.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};
use seawall_core::pool::Pool;
use seawall_core::{Errno, table};
use seawall_wire::desk::Desk;
use serde::{Deserialize, Serialize};

use crate::log::Log;
use crate::parts::rebuilding::{RebuildStatus, Rebuilding};
use crate::state::Daemon;
use crate::{desk, foreign, leader};

/// How long a write waits that nobody syncs.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 150_000_000 };

/// What a journal's device was given.
#[derive(Debug, Serialize, Deserialize)]
pub struct JournalStatus {
    /// Bytes of the journal.
    pub size: u64,
    /// Writes to the device.
    pub device_writes: u64,
    /// Bytes of them.
    pub device_bytes: u64,
    /// Bytes of the log in them; the rest is headers, tables of contents and padding.
    pub data_bytes: u64,
    /// Syncs that waited for the device.
    pub waits: u64,
    /// Times that one of them looked what there is to write, for itself and everybody who waited; often nothing is
    /// left.
    pub leads: u64,
    /// Syncs that waited for each write to the device.
    pub syncs_per_write: f64,
    /// errno of the write that failed: since then every sync fails. 0: none.
    pub failed: u32,
    /// The process that is stopped (a signal, a debugger) while it writes an anchor or a table to the device: everybody waits
    /// for it.
    pub stopped: Option<u32>,
    /// Processes that are stopped (a signal, a debugger, a control group that is frozen) with a batch in hand: others go on
    /// in their place.
    #[serde(default)]
    pub standing_still: Vec<u32>,
    /// How often somebody went on in the place of one that was stopped.
    #[serde(default)]
    pub replaced: u32,
    /// The two copies of a mirrored log.
    #[serde(default)]
    pub mirror: Option<MirrorStatus>,
}

/// The copies of a mirrored log.
#[derive(Debug, Serialize, Deserialize)]
pub struct MirrorStatus {
    /// The first and the second one.
    pub copies: [MirrorCopyStatus; 2],
    /// errno of the write by which one of them was lost in this run, until it is rebuilt; 0: none was.
    pub error: u32,
    /// The rebuild of one that was lost: the one under way, or the last one of this daemon.
    #[serde(default)]
    pub rebuild: Option<RebuildStatus>,
}

/// One copy of a mirrored log.
#[derive(Debug, Serialize, Deserialize)]
pub struct MirrorCopyStatus {
    /// Where it is.
    #[serde(with = "seawall_core::path_text")]
    pub path: PathBuf,
    /// It is written; else it was lost.
    pub written: bool,
}

impl MirrorStatus {
    /// The copy that was lost.
    pub fn lost(&self) -> Option<&Path> {
        self.copies.iter().find(|copy| !copy.written).map(|copy| copy.path.as_path())
    }
}

/// For `status`.
pub(crate) fn status(pool: &Pool, rebuilding: &Rebuilding) -> Option<JournalStatus> {
    let desk = desk::of(pool)?;
    let (writes, waits) = (desk.writes().load(Relaxed), desk.waits().load(Relaxed));
    Some(JournalStatus {
        size: desk.size().load(Relaxed),
        device_writes: writes,
        device_bytes: desk.bytes().load(Relaxed),
        data_bytes: desk.data().load(Relaxed),
        waits,
        leads: desk.leads().load(Relaxed),
        syncs_per_write: if writes == 0 { 0.0 } else { waits as f64 / writes as f64 },
        failed: desk.failed().load(Relaxed),
        stopped: leader::stopped(desk),
        standing_still: seawall_core::journal::replaced(desk).collect(),
        replaced: desk.replaced_ever().load(Relaxed),
        mirror: mirror(pool, rebuilding, desk),
    })
}

fn mirror(pool: &Pool, rebuilding: &Rebuilding, desk: Desk<'_>) -> Option<MirrorStatus> {
    let [first, second] = &pool.mirror.as_ref()?.paths();
    let written = desk.copies().load(SeqCst);
    let copy = |i: u32, path: &Path| MirrorCopyStatus { path: path.into(), written: written >> i & 1 != 0 };
    let (copies, error) = ([copy(0, first), copy(1, second)], desk.lost().load(Relaxed));
    Some(MirrorStatus { copies, error, rebuild: rebuilding.status() })
}

/// What was done about a mirror at the start: for the log.
pub(crate) fn notes(pool: &Pool) -> Vec<String> {
    pool.mirror.as_ref().map_or(Vec::new(), |mirror| mirror.notes.clone())
}

/// What it took to open a pool, if it had to be read: for the log.
pub(crate) fn cost(pool: &Pool, took: Duration) -> Option<String> {
    let image = pool.image.as_ref()?;
    let read = image.read?;
    let (batches, seconds) = (read.batches, took.as_secs_f64());
    let size = read.anchor.size >> 20;
    Some(match image.made {
        true => format!("read a log of {size} MiB, {batches} batches in use, in {seconds:.2} s"),
        false => format!(
            "the log's device had failed; everything that it had confirmed is there ({batches} batches of \
             {size} MiB, {seconds:.2} s), and the daemon writes to it again"
        ),
    })
}

/// Hardens what nobody syncs, until the daemon ends. Costs no device write while nothing is new.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    while desk::of(&daemon.pool).is_some() && !daemon.lifetime.is_ending() {
        if let Err(error) = daemon.engine.harden_all() {
            tell(daemon, error);
        }
        tell_lost(&daemon.pool, &daemon.rebuilding, &daemon.log);
        let mut end: Vec<PollFd<'_>> = daemon.lifetime.end_event().into_iter().collect();
        // Whatever comes of it, the next look is due.
        let _ = poll(&mut end, Some(&PAUSE));
    }
}

/// A copy of a mirrored log failed while it was written.
pub(crate) fn tell_lost(pool: &Pool, rebuilding: &Rebuilding, log: &Log) {
    let Some(desk) = desk::of(pool) else { return };
    let Some(status) = mirror(pool, rebuilding, desk) else { return };
    let Some(lost) = status.lost().filter(|_| status.error != 0) else { return };
    let why = std::io::Error::from_raw_os_error(status.error as i32);
    log.say_once(
        &format!("the log's mirror {}", desk.given().load(Relaxed)),
        format!(
            "THE LOG LOST ITS COPY {} ({why}): commits go on with the other copy alone. See the kernel's \
             log. Once the lost copy works again, the next start of the log rebuilds it. `seawall mirror` \
             rebuilds it at once, or puts another one in its place",
            lost.display()
        ),
    );
}

fn tell(daemon: &Daemon, error: Errno) {
    if error == Errno::NOSPC {
        return daemon.engine.wake_daemon();
    }
    let errno = desk::of(&daemon.pool).map_or(0, |desk| desk.failed().load(Relaxed));
    let why = std::io::Error::from_raw_os_error(errno as i32);
    daemon.log.say_once(
        "the log's device",
        format!(
            "THE LOG'S DEVICE FAILED ({why}): every sync fails from now on. Stop the database; everything \
             that was acknowledged is kept. See the kernel's log, then start again"
        ),
    );
}

fn is_empty(pool: &Pool) -> bool {
    table::files(pool).is_ok_and(|files| files.is_empty())
}

/// After an offline recovery: the image goes, unless somebody has it.
pub(crate) fn leave(pool: &Pool) {
    let users = pool.file.metadata().map(|image| foreign::mappers(image.dev(), image.ino()));
    if users.is_ok_and(|users| users.is_empty()) {
        // It costs memory, and the next start takes it as it is.
        let _ = pool.remove_image(is_empty(pool));
    }
}

/// After the log was closed, and no process can join any more: removes the image. False if files are still registered, so that
/// the image and what belongs to this boot stay. Always true without a journal.
pub(crate) fn forget_image(daemon: &Daemon) -> bool {
    if desk::of(&daemon.pool).is_none() {
        return true;
    }
    if !is_empty(&daemon.pool) {
        return false;
    }
    if let Err(error) = daemon.pool.remove_image(true) {
        daemon.log.say(format!("cannot remove the log's image from memory: {error}"));
    }
    true
}
