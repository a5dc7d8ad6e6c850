//! Segments whose records are all retired become free.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use rustix::thread::futex;
use seawall_wire::shm::SegmentState;

use crate::{Engine, Owner};

/// Frees the segments whose records are all retired, at or below the LSN `safe`. Returns their number.
pub(super) fn free_segments(engine: &Engine, who: Owner, safe: u64) -> u32 {
    let n = engine.layout().segments;
    let freed = (0..n).filter(|i| free_segment(engine, who, *i, safe)).count() as u32;
    if freed > 0 {
        announce(engine, freed);
    }
    freed
}

fn free_segment(engine: &Engine, who: Owner, index: u32, safe: u64) -> bool {
    let shm = engine.shm();
    let Some(segment) = shm.segment(index) else { return false };
    if segment.last_lsn().load(Acquire) > safe {
        return false;
    }
    let state = segment.state().load(Acquire);
    let free = state == SegmentState::Full as u32
        || SegmentState::lane_of(state).is_some_and(|lane| detach(engine, who, (index, lane), safe));
    // A full segment may meanwhile be claimed to be copied out of the pool.
    let free =
        free && segment.state().compare_exchange(state, SegmentState::Free as u32, AcqRel, Acquire).is_ok();
    if free {
        shm.header().segment_cursor().fetch_min(index, Relaxed);
    }
    free
}

/// Takes an open segment away from its idle lane, if everything in it is retired.
fn detach(engine: &Engine, who: Owner, (index, lane): (u32, u32), safe: u64) -> bool {
    let shm = engine.shm();
    let Some(lane) = shm.lane(lane) else { return false };
    if lane.owner().compare_exchange(0, who.word(), SeqCst, Relaxed).is_err() {
        return false;
    }
    let mine = lane.segment().load(Acquire) == index + 1;
    let retired = shm.segment(index).is_some_and(|s| s.last_lsn().load(Acquire) <= safe);
    if mine && retired {
        lane.segment().store(0, Release);
    }
    lane.owner().store(0, Release);
    // It does not belong to the lane any more, and yet it is open: a daemon was killed between this and freeing it.
    retired
}

/// Wakes the threads that wait for space.
pub(crate) fn announce(engine: &Engine, freed: u32) {
    let header = engine.shm().header();
    header.free_segments().fetch_add(freed, Relaxed);
    header.exhausted().store(0, SeqCst);
    header.freed().fetch_add(1, SeqCst);
    // Nobody may be waiting; that is no error.
    let _ = futex::wake(header.freed(), futex::Flags::empty(), i32::MAX as u32);
}

/// Free segments, counted exactly: for `status`, and to put the hint right after a take-over.
pub fn count_free(engine: &Engine) -> u32 {
    let shm = engine.shm();
    let is_free =
        |i: &u32| shm.segment(*i).is_some_and(|s| s.state().load(Acquire) == SegmentState::Free as u32);
    (0..engine.backed()).filter(is_free).count() as u32
}
