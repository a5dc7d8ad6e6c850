//! The spill thread: while the log is short of free segments, full ones are copied to the area behind the pool.
//!
//! Beside destaging, which may be waiting for the data's disk: that is when there is too little room. If the area's disk
//! fails, the daemon's log says so once; nothing is lost by that ([`seawall_core::spill`]).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;

use rustix::thread::futex;
use seawall_core::Errno;
use seawall_core::pool::Pool;
use seawall_core::spill::{Area, Spiller};
use serde::{Deserialize, Serialize};

use crate::log::Log;
use crate::parts::spill::Spill;
use crate::state::Daemon;

/// Between looks that nobody rings for.
const PAUSE: futex::Timespec = futex::Timespec { tv_sec: 1, tv_nsec: 0 };

/// The area behind a pool.
#[derive(Debug, Serialize, Deserialize)]
pub struct SpillStatus {
    /// Where it is.
    #[serde(with = "seawall_core::path_text")]
    pub path: PathBuf,
    /// Bytes of its slots.
    pub size: u64,
    /// Bytes of slots that hold what the files may lack.
    pub used: u64,
    /// Bytes that were copied to it since the daemon began.
    pub spilled_bytes: u64,
    /// Why nothing is copied to it, if that is so.
    pub trouble: Option<String>,
}

/// Runs until the daemon ends.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    let Some(area) = &daemon.pool.area else { return };
    let mut spiller = match Spiller::open(&daemon.pool) {
        Ok(Some(spiller)) => spiller,
        Ok(None) => return,
        Err(error) => return fail(&daemon.spill, &daemon.log, area, &error),
    };
    while !daemon.lifetime.is_ending() {
        let bell = daemon.engine.shm().header().bell().load(Acquire);
        while step(daemon, area, &mut spiller) && !daemon.lifetime.is_ending() {}
        // Woken, timed out, or rung already: in every case the next round looks.
        let _ = futex::wait(daemon.engine.shm().header().bell(), futex::Flags::empty(), bell, Some(&PAUSE));
    }
}

/// One write to the area, after which the numbers are anew: a burst may last. False if there was nothing to do.
fn step(daemon: &Daemon, area: &Area, spiller: &mut Spiller) -> bool {
    let fail = |error: &Errno| fail(&daemon.spill, &daemon.log, area, &(*error).into());
    let freed = spiller.step(&daemon.engine).inspect_err(fail);
    let retired = daemon.pool.retired().load(&daemon.pool.region).unwrap_or(0);
    daemon.spill.note(spiller.spilling(retired));
    freed.is_ok_and(|freed| freed > 0)
}

fn fail(spill: &Spill, log: &Log, area: &Area, error: &std::io::Error) {
    spill.fail(error.to_string());
    log.say(format!(
        "THE SPILL AREA {} FAILED ({error}): nothing more is copied to it, and the log is only as large as \
         its pool. Nothing is lost while the machine runs: bring the area's content to the files with \
         `seawall drain`, repair the disk, and start the daemon again",
        area.path().display()
    ));
}

/// For `status`.
pub(crate) fn status(pool: &Pool, spill: &Spill) -> Option<SpillStatus> {
    let area = pool.area.as_ref()?;
    let (used, spilled_bytes, trouble) = spill.now();
    Some(SpillStatus {
        path: area.path().into(),
        size: area.bytes(),
        used: u64::from(used) * u64::from(pool.superblock.segment_bytes),
        spilled_bytes,
        trouble,
    })
}
