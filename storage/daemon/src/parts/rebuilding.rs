//! The rebuild of a lost copy of a mirrored log: what is asked for, and how far it is.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex};

use seawall_media::locks::{self, lock};
use serde::{Deserialize, Serialize};

use super::lifetime::Lifetime;

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

    /// Has a copy rebuilt. Whether it can be is found out later. The daemon is held until it has ended.
    ///
    /// # Errors
    /// If one is being rebuilt, or the daemon is about to end.
    pub fn begin(&self, wanted: Wanted, lifetime: &Lifetime) -> Result<RebuildStatus, String> {
        let mut job = lock(&self.asked);
        if let Some(last) = job.last.as_ref().filter(|last| last.is_under_way()) {
            let (path, percent) = (last.path.display(), last.percent());
            return Err(format!(
                "the log's copy {path} is being rebuilt ({percent} %): try again when that has ended"
            ));
        }
        if job.over {
            return Err("the daemon is about to end: try again".into());
        }
        let (path, state) = (wanted.path.clone(), RebuildState::Preparing);
        let begun = RebuildStatus { path, state, done: 0, bytes: 0, error: None };
        (job.wanted, job.last) = (Some(wanted), Some(begun.clone()));
        lifetime.hold();
        self.changed.notify_all();
        Ok(begun)
    }

    /// For `status`.
    pub fn status(&self) -> Option<RebuildStatus> {
        lock(&self.asked).last.clone()
    }

    /// Waits for the next one; `None` at the end.
    pub fn next(&self) -> Option<Wanted> {
        let mut job = lock(&self.asked);
        while !job.over {
            if let Some(wanted) = job.wanted.take() {
                return Some(wanted);
            }
            job = locks::wait(&self.changed, job);
        }
        None
    }

    /// How far it is. True if it is to go on.
    pub fn note(&self, (done, bytes): (u64, u64)) -> bool {
        let mut job = lock(&self.asked);
        if let Some(last) = &mut job.last {
            (last.state, last.done, last.bytes) = (RebuildState::Copying, done, bytes);
        }
        !job.over
    }

    /// It has ended.
    pub fn close(&self, error: Option<String>, lifetime: &Lifetime) {
        if let Some(last) = &mut lock(&self.asked).last {
            last.state = if error.is_some() { RebuildState::Failed } else { RebuildState::Done };
            last.error = error;
        }
        lifetime.release();
    }
}
