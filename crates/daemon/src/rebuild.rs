//! The lost copy of a mirrored log is rebuilt while the log is in use, when the operator asks for it.
//!
//! Input: where it is to be. Output: both copies count again, or why not. One at a time, by a thread of its own: whoever
//! asked may go. The daemon stays until it is done, unless it is told to end: then the next start of the log finishes it.
//!
//! Not handled here: what makes a copy whole (`seawall_core::journal::rebuild`), or fit (`seawall_core::pool`).

use std::path::PathBuf;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Condvar, Mutex};

use seawall_core::Errno;
use seawall_core::journal::rebuild::Rebuild;
use seawall_media::locks::{self, lock};
use serde::{Deserialize, Serialize};

use crate::state::Daemon;
use crate::{journal, serve};

/// Body of a Mirror request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// Begin. Answered with a [`RebuildStatus`] at once.
    Rebuild(Wanted),
    /// How far it is: `null`, or a [`RebuildStatus`].
    Look,
}

/// What is to be the log's other copy.
#[derive(Debug, Serialize, Deserialize)]
pub struct Wanted {
    /// A new file, a disk or partition, or the copy that was lost.
    #[serde(with = "seawall_core::path_text")]
    pub path: PathBuf,
    /// Overwrite what a disk or partition holds.
    pub force: bool,
}

/// A rebuild.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RebuildStatus {
    /// Where the copy is.
    #[serde(with = "seawall_core::path_text")]
    pub path: PathBuf,
    /// How far it is.
    pub state: RebuildState,
    /// Bytes that are copied.
    pub done: u64,
    /// Bytes to be copied; 0 until that is known.
    pub bytes: u64,
    /// Why it failed.
    pub error: Option<String>,
}

/// How far a rebuild is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RebuildState {
    /// Room for it is made.
    Preparing,
    /// It is written, and does not count.
    Copying,
    /// Both copies count.
    Done,
    /// The log goes on with one copy.
    Failed,
}

impl RebuildStatus {
    /// True until it is done or failed.
    pub fn is_under_way(&self) -> bool {
        matches!(self.state, RebuildState::Preparing | RebuildState::Copying)
    }

    /// The share that is copied, in percent.
    pub fn percent(&self) -> u64 {
        (self.done * 100).checked_div(self.bytes).unwrap_or(0)
    }
}

/// What is asked for, and what became of it.
#[derive(Default)]
pub(crate) struct Rebuilding {
    asked: Mutex<Job>,
    changed: Condvar,
}

#[derive(Default)]
struct Job {
    wanted: Option<Wanted>,
    last: Option<RebuildStatus>,
    over: bool,
}

impl Rebuilding {
    /// The thread ends with the piece that it is at.
    pub fn end(&self) {
        lock(&self.asked).over = true;
        self.changed.notify_all();
    }

    fn next(&self) -> Option<Wanted> {
        let mut job = lock(&self.asked);
        while !job.over {
            if let Some(wanted) = job.wanted.take() {
                return Some(wanted);
            }
            job = locks::wait(&self.changed, job);
        }
        None
    }

    /// True if it is to go on.
    fn note(&self, (done, bytes): (u64, u64)) -> bool {
        let mut job = lock(&self.asked);
        if let Some(last) = &mut job.last {
            (last.state, last.done, last.bytes) = (RebuildState::Copying, done, bytes);
        }
        !job.over
    }

    fn close(&self, error: Option<String>) {
        if let Some(last) = &mut lock(&self.asked).last {
            last.state = if error.is_some() { RebuildState::Failed } else { RebuildState::Done };
            last.error = error;
        }
    }
}

/// For `status`.
pub(crate) fn status(daemon: &Daemon) -> Option<RebuildStatus> {
    lock(&daemon.rebuilding.asked).last.clone()
}

/// Has a copy rebuilt. Whether it can be is found out later.
///
/// # Errors
/// If one is being rebuilt, or the daemon is about to end.
pub(crate) fn begin(daemon: &Daemon, wanted: Wanted) -> Result<RebuildStatus, String> {
    let mut job = lock(&daemon.rebuilding.asked);
    if let Some(last) = job.last.as_ref().filter(|last| last.is_under_way()) {
        let (path, percent) = (last.path.display(), last.percent());
        return Err(format!(
            "the log's copy {path} is being rebuilt ({percent} %): ask again when that has ended"
        ));
    }
    if job.over {
        return Err("the daemon is about to end: ask again".into());
    }
    let (path, state) = (wanted.path.clone(), RebuildState::Preparing);
    let begun = RebuildStatus { path, state, done: 0, bytes: 0, error: None };
    (job.wanted, job.last) = (Some(wanted), Some(begun.clone()));
    // Given back when it has ended.
    daemon.lifetime.hold();
    daemon.rebuilding.changed.notify_all();
    Ok(begun)
}

/// Rebuilds what is asked for, until the daemon ends.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    while let Some(wanted) = daemon.rebuilding.next() {
        let path = wanted.path.display().to_string();
        // It is forgotten with the beginning.
        journal::tell_lost(daemon);
        daemon.log.say(format!("the log's lost copy is rebuilt on {path}"));
        let error = rebuild(daemon, &wanted).err();
        match &error {
            None => {
                daemon.log.say(format!("the log's copy {path} is whole: commits are on both copies again"))
            }
            Some(why) => daemon.log.say(format!(
                "THE LOG'S COPY {path} WAS NOT REBUILT ({why}): commits go on, on the other one alone"
            )),
        }
        daemon.rebuilding.close(error);
        daemon.lifetime.release();
    }
}

fn rebuild(daemon: &Daemon, wanted: &Wanted) -> Result<(), String> {
    let image = daemon.engine.pool();
    serve::be_lost(daemon);
    let prepared = daemon.pool.replace_copy(&wanted.path, wanted.force);
    serve::be_found(daemon);
    let prepared = prepared.map_err(|error| error.to_string())?;
    let journal = image.journal().ok_or("the log lies on no block device")?;
    let failed = |error: std::io::Error| match error.raw_os_error() {
        _ if journal.desk(image).failed().load(SeqCst) != 0 => "the log's other copy failed as well".into(),
        Some(code) if code == Errno::CANCELED.raw_os_error() => {
            "the daemon ends: the next start of the log finishes it".into()
        }
        Some(_) => format!("writing to {}: {error}", wanted.path.display()),
        None => error.to_string(),
    };
    let rebuild = Rebuild::begin(journal, image, prepared.devices, &prepared.source);
    let rebuild = rebuild.map_err(|error| failed(error.into()))?;
    rebuild.run(|progress| daemon.rebuilding.note(progress)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{closing, start};

    #[test]
    fn one_is_rebuilt_at_a_time_and_its_end_is_told() {
        let dir = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let pool = dir.path().join("pool");
        seawall_core::pool::create(&pool, 16 << 20, true, false).expect("a pool");
        let options =
            serve::Options { pool, keep: false, boot: false, journal: false, cache: None, watchdog: None };
        let daemon = Arc::new(start::start(&options).expect("started"));
        let wanted = |name: &str| Wanted { path: dir.path().join(name), force: false };
        begin(&daemon, wanted("a")).expect("begun");
        assert_eq!(daemon.lifetime.holders(), 1, "it is waited for");
        assert!(daemon.rebuilding.note((30, 120)), "it goes on");
        assert_eq!(status(&daemon).map(|status| status.percent()), Some(25));
        let said = begin(&daemon, wanted("b")).expect_err("refused");
        assert!(said.contains("/a is being rebuilt (25 %)"), "{said}");
        std::thread::scope(|scope| {
            scope.spawn(|| run(&daemon));
            while status(&daemon).is_some_and(|status| status.is_under_way()) {
                std::thread::yield_now();
            }
            daemon.rebuilding.end();
        });
        let said = status(&daemon).expect("its end").error.expect("no second copy");
        assert!(said.contains("has no second copy") && said.contains("seawall stop"), "{said}");
        assert_eq!(daemon.lifetime.holders(), 0);
        assert!(begin(&daemon, wanted("c")).expect_err("refused").contains("about to end"));
        closing::forget_boot(&daemon);
        start::release(&daemon);
    }
}
