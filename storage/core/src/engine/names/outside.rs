//! Changes of names in directories that the log does not know.
//!
//! No record says what such a change does. If the directory entered the log while the change is under way, what was recorded before
//! it would be replayed after it: a file would be back where it was moved away from. So
//!
//! | the change | the directory |
//! |---|---|
//! | counts itself among those under way | is found by everybody |
//! | looks which directories everybody finds by now, and takes its own out of the log | looks whether a change is under way, and stays outside if so |
//! | is made | is synced, or what is in it becomes records; it is in the log |
//!
//! One of the two sees the other, whoever is first.
//!
//! What may not be trusted: that a change goes on. One whose process has died does not count. While one is stopped, or waits in the
//! kernel, no directory enters the log, and syncs of those outside are real.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::SeqCst;

use seawall_media::sim;

use crate::Owner;
use crate::engine::Engine;

/// How often a directory looks until it stays outside. The change may need the turn of another directory, whose holder does the
/// same: so nobody waits long.
const LOOKS: u32 = 2000;
/// The same in the simulator.
const LOOKS_SIMULATED: u32 = 3;

/// A change that is under way until this is dropped.
pub(in crate::engine) struct UnderWay<'e>(Option<[&'e AtomicU32; 2]>);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.iter().flatten().for_each(|count| _ = count.fetch_sub(1, SeqCst));
    }
}

impl Engine {
    /// Runs a call that changes names in directories not all of which were in the log a moment ago. `known`:
    /// [`directories`](Self::directories) before they were looked for. Of the directories in `shrinking` the call may take
    /// names away, or give them to files that were there. `entered`: one may have entered the log, and has to leave it. `who` is
    /// `None` for a process that has no slot: the log sees its changes as it sees those of a program without Seawall.
    pub fn outside<R>(
        &self,
        who: Option<Owner>,
        known: u32,
        shrinking: impl Iterator<Item = (u64, u64)>,
        entered: impl Fn(),
        call: impl FnOnce() -> R,
    ) -> R {
        let _under_way = self.begins_outside(who);
        if self.has_directories() {
            shrinking.for_each(|inode| self.shrinks(inode));
        }
        let mut seen = known;
        while self.directories() != seen {
            seen = self.directories();
            entered();
        }
        call()
    }

    /// Until this is dropped no directory enters the log, if it is not found by its caller.
    pub(in crate::engine) fn begins_outside(&self, who: Option<Owner>) -> UnderWay<'_> {
        let client = who.and_then(|who| self.shm().client(who.client()));
        let counts = client.map(|client| [client.outside(), self.shm().header().outside()]);
        counts.iter().flatten().for_each(|count| _ = count.fetch_add(1, SeqCst));
        UnderWay(counts)
    }

    /// True if no change is under way that may not have found the directory which the caller is about to bring into the log.
    pub(super) fn is_seen_by_all(&self) -> bool {
        if self.shm().header().outside().load(SeqCst) == 0 {
            return true;
        }
        (0..self.shm().shape().clients).all(|number| self.has_ended_outside(number))
    }

    fn has_ended_outside(&self, number: u32) -> bool {
        let Some(client) = self.shm().client(number) else { return true };
        let is_over = || client.outside().load(SeqCst) == 0 || Owner::new(number, 0).is_dead(self.shm());
        let mut looks = 0;
        while !is_over() {
            let most = if sim::waits() { LOOKS_SIMULATED } else { LOOKS };
            looks += 1;
            if looks >= most {
                return false;
            }
            core::hint::spin_loop();
        }
        true
    }
}
