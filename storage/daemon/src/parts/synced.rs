//! Since when everything below a directory is on its disk, or in the log.
//!
//! What has not changed since then needs no sync, and a file says by its ctime when it changed: every way of changing it moves
//! that (a write, a store into a mapping, a new length, a new name), and no program can set it. It is read from the clock of the day,
//! so it proves nothing once somebody has set that clock: the kernel tells so here, and everything is forgotten.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use seawall_media::Identity;
use seawall_media::locks::{lock, wait_for};

/// A write sets the ctime before it copies its bytes, and a sync that comes between the two misses them. No write of a database
/// takes so many seconds, also if the kernel holds it up because too much is to be written.
const LONGEST_WRITE: i64 = 30;
/// A second that no timer waits for.
const NEVER: i64 = 1 << 40;

/// By root.
pub(crate) struct Synced {
    known: Mutex<Known>,
    asked: Condvar,
}

#[derive(Default)]
struct Known {
    /// Seconds of the clock of the day. By directory, as a root's number is used again.
    since: Vec<(Identity, i64)>,
    /// `None`: this kernel cannot say when somebody sets the clock, so nothing is ever known.
    clock: Option<OwnedFd>,
    /// How often somebody has.
    set: u64,
    is_asked: bool,
}

/// The moment before a sync began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    second: i64,
    set: u64,
}

impl Synced {
    /// Nothing is known yet.
    pub fn new() -> Self {
        let known = Known { clock: watch_the_clock().ok(), ..Known::default() };
        Self { known: Mutex::new(known), asked: Condvar::new() }
    }

    /// There is a root of which nothing is known.
    pub fn ask(&self) {
        lock(&self.known).is_asked = true;
        self.asked.notify_all();
    }

    /// Waits until somebody asks, or so long. True if somebody did.
    pub fn wait(&self, time: Duration) -> bool {
        let mut known = lock(&self.known);
        if !known.is_asked {
            known = wait_for(&self.asked, known, time).0;
        }
        std::mem::take(&mut known.is_asked)
    }

    /// To be taken before a sync of everything below a root. `None`: there is no use in it.
    pub fn mark(&self) -> Option<Mark> {
        let mut known = lock(&self.known);
        known.clock.as_ref()?;
        known.look_at_the_clock();
        // The one that file systems stamp files with.
        Some(Mark { second: clock_gettime(ClockId::RealtimeCoarse).tv_sec, set: known.set })
    }

    /// Everything that changed below it before the mark is on its disk or in the log.
    pub fn is_synced(&self, root: &Identity, mark: Mark) {
        let mut known = lock(&self.known);
        known.look_at_the_clock();
        if known.set == mark.set {
            known.since.retain(|(other, _)| other != root);
            known.since.push((root.clone(), mark.second));
        }
    }

    /// Whatever has an older ctime, in whole seconds (which is all that some file systems keep), is on its disk or in the
    /// log. `None`: that is not known.
    pub fn since(&self, root: &Identity) -> Option<i64> {
        lock(&self.known).since(root).map(|second| second - LONGEST_WRITE)
    }
}

impl Known {
    fn since(&mut self, root: &Identity) -> Option<i64> {
        self.look_at_the_clock();
        self.since.iter().find(|(other, _)| other == root).map(|(_, second)| *second)
    }

    fn look_at_the_clock(&mut self) {
        let mut times = [0; 8];
        let looked =
            self.clock.as_ref().map_or(Err(Errno::BADF), |clock| rustix::io::read(clock, &mut times));
        if looked != Err(Errno::AGAIN) {
            self.since.clear();
            self.set += 1;
        }
    }
}

/// A timer that is cancelled whenever somebody sets the clock (timerfd_create(2)).
fn watch_the_clock() -> io::Result<OwnedFd> {
    let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    let none = Timespec { tv_sec: 0, tv_nsec: 0 };
    let never = Itimerspec { it_interval: none, it_value: Timespec { tv_sec: NEVER, tv_nsec: 0 } };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET, &never)?;
    Ok(timer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots() -> [Identity; 2] {
        [1, 2].map(|n| Identity { fs: [0; 16], kind: 1, handle: vec![n] })
    }

    #[test]
    fn what_is_known_is_of_one_root_and_ends_when_the_clock_is_set() {
        let (synced, [one, two]) = (Synced::new(), roots());
        assert_eq!(synced.since(&one), None);
        let mark = synced.mark().expect("a clock");
        synced.is_synced(&one, mark);
        assert_eq!(synced.since(&one), Some(mark.second - LONGEST_WRITE));
        assert_eq!(synced.since(&two), None);
        lock(&synced.known).set += 1;
        synced.is_synced(&two, mark);
        assert_eq!(synced.since(&two), None, "the clock was set since that sync began");
        // As a read of the timer says it.
        lock(&synced.known).clock = None;
        assert_eq!(synced.since(&one), None);
        assert!(synced.mark().is_none());
    }

    /// The kernel's side, which needs the right to set the clock: it is set to what it is.
    #[test]
    fn the_kernel_tells_when_the_clock_is_set() {
        let synced = Synced::new();
        let [one, _] = roots();
        synced.is_synced(&one, synced.mark().expect("a clock"));
        assert!(synced.since(&one).is_some());
        let now = clock_gettime(ClockId::Realtime);
        if rustix::time::clock_settime(ClockId::Realtime, now).is_ok() {
            assert_eq!(synced.since(&one), None);
        }
    }
}
