//! Seats: what a leader has to itself, and what is known of the threads on them.
//!
//! A leader sits on one, and so does a leader that was replaced, until it goes on and leaves. The seat from which the
//! last batch was committed stays as it is, occupied or not: it says where that batch ends.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use seawall_wire::desk::{Desk, LastWord, LeadWord, Seat};

use super::lock::{fence_off, take_from};
#[cfg(feature = "std")]
use crate::thread::Doing;
use crate::thread::Thread;

/// The thread on the seat.
pub(super) fn sitting(seat: Seat<'_>) -> Option<Thread> {
    let word = seat.holder().load(SeqCst);
    (word != 0).then(|| Thread { word, namespace: seat.namespace().load(SeqCst) })
}

/// Takes a seat that is free, and is not the one that says where the last batch ends.
pub(super) fn sit(desk: Desk<'_>, client: u32) -> Option<u32> {
    let me = Thread::this();
    let take = |seat: u32, from: u64| {
        let view = desk.seat(seat);
        let is_last = || LastWord(desk.last().load(SeqCst)).seat() == seat;
        if is_last() || view.holder().compare_exchange(from, me.word, SeqCst, Relaxed).is_err() {
            return false;
        }
        // The former holder may have committed its batch and left.
        if is_last() {
            view.holder().store(0, SeqCst);
            return false;
        }
        view.size().store(0, SeqCst);
        view.namespace().store(me.namespace, SeqCst);
        view.client().store(client, SeqCst);
        true
    };
    let dead =
        |seat: u32| sitting(desk.seat(seat)).filter(|thread| thread.is_dead()).map(|thread| thread.word);
    let free = (0..Desk::SEATS).find(|seat| desk.seat(*seat).holder().load(SeqCst) == 0 && take(*seat, 0));
    // The dead thread's own last write is over: a thread is not gone before the kernel is done with it.
    free.or_else(|| (0..Desk::SEATS).find(|seat| dead(*seat).is_some_and(|word| take(*seat, word))))
}

/// Where others may write, whichever thread leads; at most one stretch for each seat.
pub(super) fn claimed_by_others(desk: Desk<'_>, mine: u32) -> impl Iterator<Item = (u64, u64)> + use<'_> {
    let others = (0..Desk::SEATS).filter(move |seat| *seat != mine).map(move |seat| desk.seat(seat));
    let claims = others.filter(|seat| seat.holder().load(SeqCst) != 0);
    claims.map(|seat| (seat.position().load(SeqCst), seat.size().load(SeqCst))).filter(|(_, size)| *size != 0)
}

/// Frees the seats for which `is_dead` is true, and the lock if one of their threads held it.
pub(super) fn bury(desk: Desk<'_>, is_dead: impl Fn(Seat<'_>) -> bool) {
    for seat in 0..Desk::SEATS {
        let view = desk.seat(seat);
        let holder = view.holder().load(SeqCst);
        if holder == 0 || !is_dead(view) {
            continue;
        }
        let word = desk.lock().load(SeqCst);
        if word != 0 && LeadWord(word).seat() == seat && view.holder().load(SeqCst) == holder {
            fence_off(desk);
            take_from(desk, word);
        }
        // Another thread may have found it dead as well, and taken the seat.
        let _ = view.holder().compare_exchange(holder, 0, SeqCst, Relaxed);
    }
}

/// Frees the lock and the seats of threads that have ended, even if nobody has reaped them yet: until then their ids
/// still exist, and threads that wait for the lock take them for alive. For the daemon.
#[cfg(feature = "std")]
pub fn bury_dead(desk: Desk<'_>) {
    bury(desk, |seat| sitting(seat).is_some_and(|thread| thread.is_dead() || thread.doing() == Doing::Ended));
}

/// Processes that are stopped, or were until now, while they had a batch to write, and were replaced: by their
/// numbers, if these belong to this namespace.
#[cfg(feature = "std")]
pub fn replaced(desk: Desk<'_>) -> impl Iterator<Item = u32> + use<'_> {
    let leader = desk.leader().map(|(word, _)| word.seat());
    let others = (0..Desk::SEATS)
        .filter(move |seat| Some(*seat) != leader)
        .filter_map(move |seat| sitting(desk.seat(seat)));
    others.filter(|thread| thread.doing() == Doing::StandsStill).map(|thread| (thread.word >> 32) as u32)
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::super::desk_memory::desk_memory;
    use super::*;

    #[test]
    fn seats_run_out_and_the_one_of_the_last_batch_is_kept() {
        let region = desk_memory();
        let desk = Desk::new(&region, 0);
        desk.last().store(LastWord::new(5, 2).0, SeqCst);
        // If `sit` handed out the seats of living threads, this would never end.
        let most = 2 * Desk::SEATS as usize;
        let seats: Vec<_> = std::iter::from_fn(|| sit(desk, 0)).take(most).collect();
        assert_eq!(seats.len(), Desk::SEATS as usize - 1);
        assert!(!seats.contains(&2));
    }
}
