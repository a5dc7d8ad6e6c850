//! Log-space accounting: no segment that holds a live record may be given out again, and a drained log is
//! free again.
//!
//! Not verified: that space is freed *soon*; the free-segment hint in the run-time memory.

use seawall_core::Engine;
use seawall_core::format::SpillEntry;
use seawall_core::pool::Pool;
use seawall_core::recover::Scan;
use seawall_wire::shm::SegmentState;

/// Segments that hold back the rest of the pool, so that a small log fills.
pub const RESERVED: u64 = u64::MAX;

/// A segment with live records is not free.
///
/// # Errors
/// Which one is.
pub fn live_is_not_free(engine: &Engine, pool: &Pool, scan: &Scan) -> Result<(), String> {
    let layout = pool.layout();
    for parts in scan.live.records() {
        let lsn = parts[0].header.lsn;
        for part in parts.iter().filter(|part| part.at < pool.region.len()) {
            let index = ((part.at - layout.segments_at()) / layout.segment_bytes as usize) as u32;
            let state =
                engine.shm().segment(index).map(|s| s.state().load(std::sync::atomic::Ordering::SeqCst));
            if state == Some(SegmentState::Free as u32) {
                return Err(format!("segment {index} is free and holds the live record {lsn}"));
            }
        }
    }
    Ok(())
}

/// After a drain with nobody at work, every segment that was ever given out is free.
///
/// # Errors
/// Which ones are not.
pub fn all_free(engine: &Engine) -> Result<(), String> {
    let busy: Vec<(u32, u32, u64)> = (0..engine.layout().segments)
        .filter_map(|i| {
            let segment = engine.shm().segment(i)?;
            let state = segment.state().load(std::sync::atomic::Ordering::SeqCst);
            let last = segment.last_lsn().load(std::sync::atomic::Ordering::SeqCst);
            (state != SegmentState::Free as u32 && last != RESERVED).then_some((i, state, last))
        })
        .collect();
    if busy.is_empty() { Ok(()) } else { Err(format!("after a drain these are still in use: {busy:?}")) }
}

/// After a drain no slot of the spill area holds anything.
///
/// # Errors
/// Which ones do.
pub fn area_is_free(pool: &Pool) -> Result<(), String> {
    let retired = pool.retired().load(&pool.region).unwrap_or(0);
    let entry = |slot| SpillEntry::of(pool.layout(), slot).load(&pool.region);
    let slots = 0..pool.area.as_ref().map_or(0, |area| area.slots());
    let busy: Vec<u32> = slots.filter(|slot| entry(*slot).is_none_or(|e| e.last_lsn > retired)).collect();
    if busy.is_empty() {
        Ok(())
    } else {
        Err(format!("after a drain these slots are still in use: {busy:?}"))
    }
}
