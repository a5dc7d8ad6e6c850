//! Back-pressure: a write to a file that may not go around the log waits until space is free. So does every write to a
//! pool with a spill area, which makes space as fast as the area can be written, whereas the file's own disk may take
//! long.
//!
//! Input: a write that found the log full, and holds nothing: no file's lock, no lane, so that the destager can
//! do its work. Output: it may try again, or nobody will free space any more. Then the file leaves the log like
//! any other (P4), and until something is freed nobody waits for it again.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::thread::futex;
use seawall_media::sim;
use seawall_stats::{Event, ticks};

use super::attach::Engine;
use crate::Owner;
use crate::certain::fdatasync;
use crate::file::{Flag, Inside, SUSPENDED_AT_MOST, Slot};
use crate::format::RecordKind;
use crate::journal::Unhardened;
use crate::persist::{self, Persisted};

const NAP: futex::Timespec = futex::Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// How many steps others get during a simulated nap.
const SIMULATED_NAP: u32 = 50;
/// For how many naps the changes of a suspended file wait.
const NAPS_SUSPENDED: u32 = (SUSPENDED_AT_MOST.as_nanos() / NAP.tv_nsec as u128) as u32;
/// Naps to wait without a daemon: two seconds, in which `seawall run` starts another one.
const NAPS_WITHOUT_DAEMON: u32 = 200;
/// Naps with the file's lock held, in which a journal may get room: a second and a half. After two seconds others take
/// the lock.
const NAPS_INSIDE: u32 = 150;
/// Naps to wait while a living daemon frees nothing, because a disk hangs or refuses: thirty seconds.
const NAPS_WITHOUT_PROGRESS: u32 = 3000;

/// One write's wait.
#[derive(Default)]
pub(super) struct Wait {
    freed: u32,
    naps: u32,
    alone: u32,
    over: bool,
}

impl Wait {
    /// True if it is no use waiting any longer.
    pub fn is_over(&self) -> bool {
        self.over
    }
}

const CONTENT_MOST: u64 = 4 << 20;

impl Engine {
    /// True for a file whose writes wait when the log is full.
    #[inline]
    pub(super) fn waits_for_space(&self, slot: Slot<'_>) -> bool {
        self.log.spills || slot.state().has(Flag::ATOMIC)
    }

    /// True if a quarter of the log is free. Only then does a file come back that left because the log was full: each
    /// change of state costs a real sync.
    pub fn has_room(&self) -> bool {
        let free = self.shm().header().free_segments().load(Relaxed);
        let roomy = || self.log.pool.journal().is_none_or(|journal| journal.is_roomy(&self.log.pool));
        free >= self.backed() / 4 && roomy()
    }

    /// What a file has that nobody has synced yet enters the log with its registration, if it is no more than this, bytes; more is
    /// synced. To log a MiB takes half a millisecond, to sync it at least twice that; and others need the log too.
    pub fn content_most(&self) -> u64 {
        let layout = self.log.layout;
        (u64::from(layout.segments) * u64::from(layout.segment_bytes) / 16).min(CONTENT_MOST)
    }

    /// Segments that the log has by now: those with memory.
    pub fn backed(&self) -> u32 {
        self.log.pool.backed(self.log.layout)
    }

    /// True if somebody waited for space in vain, and none has been freed since.
    pub fn is_exhausted(&self) -> bool {
        self.shm().header().exhausted().load(Acquire) != 0
    }

    /// True once after this process found out that waiting for space is no use: somebody should learn of it.
    #[inline]
    pub fn gave_up(&self) -> bool {
        self.gave_up.load(Relaxed) && self.gave_up.swap(false, Relaxed)
    }

    /// Waits a little, or finds out that waiting is over. The caller holds no lock or lane, and tries again.
    #[cold]
    pub(super) fn wait_for_space(&self, who: Owner, slot: Slot<'_>, wait: &mut Wait) {
        let header = self.shm().header();
        let freed = header.freed().load(Acquire);
        if wait.naps == 0 || freed != wait.freed {
            // Space was freed since the last look, or may have been: look first, then sleep.
            (wait.freed, wait.naps) = (freed, 1);
            return self.wake_daemon();
        }
        let given_up = self.has_napped_enough(wait, NAPS_WITHOUT_PROGRESS);
        if given_up && header.exhausted().swap(1, SeqCst) == 0 {
            self.gave_up.store(true, Relaxed);
        }
        wait.over = given_up || self.is_exhausted();
        if wait.over {
            return;
        }
        let start = ticks();
        self.nap_until_freed(freed);
        // A simulated nap takes no time.
        if sim::process().is_none() {
            self.record(who, Event::LogFull, slot.class(), self.since(start));
        }
    }

    /// Waits a little for the end of a freeze, as [`wait_for_space`](Self::wait_for_space) does. If the daemon died,
    /// its successor ends the freeze, if there is one.
    #[cold]
    pub(super) fn wait_for_thaw(&self, wait: &mut Wait) {
        wait.over = self.has_napped_enough(wait, NAPS_SUSPENDED);
        if !wait.over {
            self.nap_until_freed(self.shm().header().freed().load(Acquire));
        }
    }

    /// Counts another nap. True after `most` naps, or after too many without a daemon.
    fn has_napped_enough(&self, wait: &mut Wait, most: u32) -> bool {
        wait.naps += 1;
        wait.alone = if self.has_daemon() { 0 } else { wait.alone + 1 };
        wait.alone > NAPS_WITHOUT_DAEMON || wait.naps > most
    }

    /// A whole record could not be persisted, because the journal has no room or nobody reaches it now. The daemon
    /// makes room there without the file's lock, so the caller keeps that lock, and its lane, for a while. If it dies
    /// meanwhile, it leaves a record that nobody published, and a lock that shows it.
    ///
    /// `None`: there was no room in time. The record is retired, so that it never counts; where that is impossible, as
    /// on a device that failed, the file becomes [`Flag::FAILED`].
    #[cold]
    pub(super) fn persist_later(
        &self,
        inside: &Inside<'_>,
        (kind, record): (RecordKind, (u64, u64)),
        mut why: Unhardened,
        fd: BorrowedFd<'_>,
    ) -> Option<Persisted> {
        let slot = inside.slot();
        let mut naps = 0;
        while why != Unhardened::Failed && self.waits_for_space(slot) && naps < NAPS_INSIDE {
            self.wake_daemon();
            self.nap_until_freed(self.shm().header().freed().load(Acquire));
            naps += 1;
            match persist::records(&self.log, slot, kind, record) {
                Ok(persisted) => return Some(persisted),
                Err(still) => why = still,
            }
        }
        inside.retire(self.pool(), || fdatasync(fd));
        None
    }

    /// Sleeps a little, and stops as soon as space was freed since the caller looked.
    fn nap_until_freed(&self, freed: u32) {
        let header = self.shm().header();
        if sim::waits() {
            // The other threads go on for a while: trying in vain would only waste steps.
            for _ in 0..SIMULATED_NAP {
                if header.freed().load(Acquire) != freed || !sim::waits() {
                    break;
                }
            }
            return;
        }
        // Woken, timed out or interrupted: in every case the caller looks again.
        let _ = futex::wait(header.freed(), futex::Flags::empty(), freed, Some(&NAP));
    }

    /// True if the daemon's process lives. A reused process id counts as alive: then progress decides.
    pub(crate) fn has_daemon(&self) -> bool {
        let pid = self.shm().header().daemon_pid().load(Acquire);
        Pid::from_raw(pid as i32).is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
    }
}
