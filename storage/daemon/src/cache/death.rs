//! The word that the kernel wipes when the thread that watches for strangers dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::zone::Zone;
use crate::state::Daemon;
use crate::sys;

/// From now on files are served, until this thread ends.
pub(crate) fn announce(daemon: &Arc<Daemon>) {
    let Some(zone) = &daemon.cache else { return };
    // First the promise that it is wiped, then what is to be wiped.
    let word = |daemon: &'static Daemon| daemon.cache.as_ref().map_or(&NOBODY, |zone| zone.cache.watcher());
    if sys::wiped_at_death(Arc::clone(daemon), word) {
        let me = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        zone.cache.watcher().store(me, SeqCst);
    } else {
        daemon.log.say("the block cache serves nothing: the kernel has no robust futexes (CONFIG_FUTEX)");
    }
}

static NOBODY: AtomicU32 = AtomicU32::new(0);

/// Nobody is served any more.
pub(super) fn revoke(zone: &Zone) {
    zone.cache.watcher().store(0, SeqCst);
}
