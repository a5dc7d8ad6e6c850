//! How long the daemon stays: while a client lives, while somebody holds it, and a moment longer.
//!
//! | who keeps it | how it is known to be gone |
//! |---|---|
//! | a process with a client slot | its process id |
//! | a process that said Hello and has not claimed its slot yet | its process id |
//! | a `seawall run` | its connection ends |

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use seawall_media::locks::lock;

use crate::process;

/// How long a daemon without clients waits for the next one.
const LINGER: Duration = Duration::from_secs(2);
/// The same before anybody came: whoever started it has yet to connect.
const FIRST: Duration = Duration::from_secs(10);

/// Those for whom the daemon stays, and its end.
pub(crate) struct Lifetime {
    keep: bool,
    ending: AtomicBool,
    /// Everything is done; only watchers may still be there.
    over: AtomicBool,
    /// Readable once the daemon is to end.
    end: Option<OwnedFd>,
    holders: AtomicUsize,
    /// Processes that said Hello, and when (nanoseconds since boot).
    greeted: Mutex<HashMap<u32, u64>>,
    idle_since: Mutex<(Instant, Duration)>,
}

impl Lifetime {
    pub fn new(keep: bool) -> Self {
        Self {
            keep,
            ending: AtomicBool::new(false),
            over: AtomicBool::new(false),
            // Without it the end is noticed a tick later.
            end: eventfd(0, EventfdFlags::CLOEXEC).ok(),
            holders: AtomicUsize::new(0),
            greeted: Mutex::default(),
            idle_since: Mutex::new((Instant::now(), FIRST)),
        }
    }

    /// A process got the descriptors.
    pub fn greet(&self, pid: u32) {
        lock(&self.greeted).insert(pid, process::now_ns());
        self.touch();
    }

    /// It could not use them, or does so no more.
    pub fn forget(&self, pid: u32) {
        lock(&self.greeted).remove(&pid);
    }

    pub fn has_greeted(&self, pid: u32) -> bool {
        lock(&self.greeted).contains_key(&pid)
    }

    /// A connection holds the daemon from now on.
    pub fn hold(&self) {
        self.holders.fetch_add(1, SeqCst);
        self.touch();
    }

    /// It does no more.
    pub fn release(&self) {
        self.touch();
        self.holders.fetch_sub(1, SeqCst);
    }

    pub fn holders(&self) -> usize {
        self.holders.load(SeqCst)
    }

    fn touch(&self) {
        *lock(&self.idle_since) = (Instant::now(), LINGER);
    }

    /// Living processes that said Hello.
    pub fn greeted(&self) -> Vec<u32> {
        let mut greeted = lock(&self.greeted);
        greeted.retain(|pid, at| process::is_same(*pid, *at));
        greeted.keys().copied().collect()
    }

    /// It was started to stay when its last client has gone.
    pub fn is_kept(&self) -> bool {
        self.keep
    }

    /// Told regularly whether clients live. True when it is time to end.
    pub fn is_over(&self, has_clients: bool) -> bool {
        if has_clients || self.holders() > 0 || self.keep {
            self.touch();
            return false;
        }
        let (since, patience) = *lock(&self.idle_since);
        since.elapsed() >= patience
    }

    /// Asks the daemon to end.
    pub fn end(&self) {
        self.ending.store(true, Relaxed);
        if let Some(end) = &self.end {
            let _ = rustix::io::write(end, &1u64.to_ne_bytes());
        }
    }

    /// Something to poll for the end with.
    pub fn end_event(&self) -> Option<PollFd<'_>> {
        self.end.as_ref().map(|end| PollFd::new(end, PollFlags::IN))
    }

    pub fn is_ending(&self) -> bool {
        self.ending.load(Relaxed)
    }

    /// Nothing is left to be done: whoever still watched may stop.
    pub fn finish(&self) {
        self.over.store(true, Relaxed);
    }

    /// True from [`Self::finish`] on.
    pub fn is_finished(&self) -> bool {
        self.over.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_and_clients_keep_the_daemon() {
        let lifetime = Lifetime::new(false);
        *lock(&lifetime.idle_since) = (Instant::now(), Duration::ZERO);
        assert!(lifetime.is_over(false));
        assert!(!lifetime.is_over(true));
        assert!(!lifetime.is_over(false), "it lingers after the last client");
        lifetime.hold();
        *lock(&lifetime.idle_since) = (Instant::now(), Duration::ZERO);
        assert!(!lifetime.is_over(false));
    }

    #[test]
    fn the_dead_are_forgotten() {
        let lifetime = Lifetime::new(false);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("spawned");
        lifetime.greet(child.id());
        assert_eq!(lifetime.greeted(), [child.id()]);
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert!(lifetime.greeted().is_empty());
    }
}
