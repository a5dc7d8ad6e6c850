//! A run-time memory that nobody uses any more: what it still knows when its log is recovered.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Acquire;

use seawall_core::file::{Flag, Slot};
use seawall_core::pool::{MEMORY, Pool};
use seawall_core::recover::Mode;
use seawall_core::takeover;
use seawall_wire::shm::Shm;

use crate::errors::DaemonError;
use crate::process;

/// It goes when the log is recovered and not before: it knows which syncs failed.
pub(crate) struct Former {
    path: PathBuf,
    failed: bool,
}

impl Former {
    /// The one at `path`.
    pub fn new(path: PathBuf, shm: &Shm) -> Self {
        let failed = Slot::all(shm).any(|slot| slot.is_dirty() && slot.state().has(Flag::FAILED));
        Self { path, failed }
    }

    /// What is left of a log whose image was made anew although it was used in this boot: somebody removed it, or a
    /// daemon was killed after it had given it up. Nothing in this memory fits to the new image.
    ///
    /// # Errors
    /// [`DaemonError::Alive`] if one of its processes lives.
    pub fn without_image(pool: &Pool) -> Result<Option<Self>, DaemonError> {
        if !pool.image.as_ref().is_some_and(|image| image.made) {
            return Ok(None);
        }
        let memory = Path::new(MEMORY);
        let Some(shm) = takeover::left_behind(memory, pool)? else { return Ok(None) };
        let clients = (0..shm.shape().clients).filter_map(|i| shm.client(i));
        let claims = clients.map(|c| (c.pid().load(Acquire), c.since().load(Acquire)));
        let alive = claims.filter(|(pid, since)| *pid != 0 && process::is_same(*pid, *since));
        let pids: Vec<_> = alive.map(|(pid, _)| pid).collect();
        if pids.is_empty() {
            Ok(Some(Self::new(takeover::shm_path(memory, pool), &shm)))
        } else {
            Err(DaemonError::Alive { pids })
        }
    }

    /// In this boot the page cache holds everything, unless a sync failed: then pages may be gone that only the
    /// log has, and a sync that succeeds now proves nothing.
    pub fn mode(former: Option<&Self>) -> Mode {
        if former.is_some_and(|former| former.failed) { Mode::Replay } else { Mode::Auto }
    }

    /// The log is recovered.
    pub fn remove(self) -> Result<(), DaemonError> {
        match std::fs::remove_file(&self.path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(takeover::StartError::Io { path: self.path, error: e }.into())
            }
            _ => Ok(()),
        }
    }
}
