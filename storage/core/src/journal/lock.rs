//! The journal's lock: its word, and which threads are woken when it is free.
//!
//! # Bells
//!
//! A waiting thread needs either the capture that is being written, or the next one. When a leader is through, threads
//! of the first kind are served, and *one* of the others has to get up to lead. So there are two bells, selected by the
//! lowest bit of the capture's number. The next capture's bell wakes one sleeper, the *heir*; only then, while the heir
//! looks for something to write, the other bell wakes everybody else. A thread that comes by while the lock is free
//! leads at once: then the heir finds the lock taken and sleeps on. A wake-up that is lost because the heir is killed
//! costs a nap, never more.
//!
//! The bells wake sleepers after the lock is free, and a waiting thread reads its bell *before* it checks whether it
//! was served: it notices anything that happens in between by the bell's number.
//!

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use rustix::thread::futex;
use seawall_wire::desk::{Desk, LastWord};

/// The former leader can commit nothing any more.
pub(super) fn fence_off(desk: Desk<'_>) {
    let fenced = |last| Some(LastWord(last).fenced().0);
    // It never fails: there is always another word.
    let _ = desk.last().fetch_update(SeqCst, SeqCst, fenced);
    desk.replaced().fetch_add(1, SeqCst);
    desk.replaced_ever().fetch_add(1, Relaxed);
}

/// Frees the lock that is held by this word.
pub(super) fn take_from(desk: Desk<'_>, word: u64) {
    let heirs = Heirs::of(desk);
    if desk.lock().compare_exchange(word, 0, SeqCst, Relaxed).is_ok() {
        heirs.wake(desk);
    }
}

/// Which threads to wake when the lock is free.
struct Heirs {
    /// The next capture.
    next: u64,
    /// One of its sleepers will do: everybody else is served.
    one: bool,
}

impl Heirs {
    /// Call this while the lock is held: its next holder begins with the next capture.
    fn of(desk: Desk<'_>) -> Self {
        let begun = desk.begun().load(SeqCst);
        // A capture that failed, or whose leader died, serves nobody: then threads wait for more than two different
        // captures. And on a device that failed nobody will lead.
        let is_over = desk.done().load(SeqCst) == begun && desk.failed().load(SeqCst) == 0;
        Self { next: begun + 1, one: is_over }
    }

    fn wake(&self, desk: Desk<'_>) {
        let ((heirs, asleep), (others, too)) = (desk.bell(self.next), desk.bell(self.next + 1));
        heirs.fetch_add(1, SeqCst);
        others.fetch_add(1, SeqCst);
        // Nobody may be waiting any more; that is no error.
        if asleep.load(SeqCst) != 0 {
            let _ = futex::wake(heirs, futex::Flags::empty(), if self.one { 1 } else { i32::MAX as u32 });
        }
        if too.load(SeqCst) != 0 {
            too.store(0, SeqCst);
            let _ = futex::wake(others, futex::Flags::empty(), i32::MAX as u32);
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::super::desk_memory::desk_memory;
    use super::super::lead::Wait;
    use super::*;

    #[test]
    fn one_leads_next_unless_nobody_was_served() {
        let region = desk_memory();
        let desk = Desk::new(&region, 0);
        desk.begun().store(7, SeqCst);
        assert!(!Heirs::of(desk).one, "its leader died: all look");
        desk.done().store(7, SeqCst);
        let heirs = Heirs::of(desk);
        assert!(heirs.one && heirs.next == 8);
        let mut wait = Wait::new(desk, 0, true);
        wait.look(8);
        heirs.wake(desk);
        assert_ne!(
            wait.bell(),
            desk.bell(8).0.load(SeqCst),
            "who looked before it rang does not fall asleep"
        );
        desk.failed().store(5, SeqCst);
        assert!(!Heirs::of(desk).one, "all hear of the failure");
    }
}
