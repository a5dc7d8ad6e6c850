//! Steps at which a test kills this process: `SEAWALL_DISK_DIES_AT=N` ends it, as kill -9 does, at the Nth one. Only in builds that
//! have assertions.

#[cfg(debug_assertions)]
use std::sync::LazyLock;
#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[cfg(debug_assertions)]
static DIES_AT: LazyLock<Option<u64>> =
    LazyLock::new(|| std::env::var("SEAWALL_DISK_DIES_AT").ok()?.parse().ok());
#[cfg(debug_assertions)]
static STEPS: AtomicU64 = AtomicU64::new(0);

/// Here a kill makes a difference.
#[inline]
pub fn step() {
    #[cfg(debug_assertions)]
    if let Some(at) = *DIES_AT
        && STEPS.fetch_add(1, Relaxed) + 1 == at
    {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}
