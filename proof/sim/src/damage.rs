//! Damage: a bit is flipped where a flipped bit must be refused or harmless (P5).
//!
//! Anywhere in a superblock, a cell, an entry of the tables; in any record that a valid one follows; in the
//! header of a segment that the lane's next one vouches for.
//!
//! Not planted: in the last record of a lane's last segment, where damage looks like a cut (FAILURE_MODEL,
//! known limit 1); in both copies of anything.

use std::collections::BTreeMap;

use seawall_core::format::{Layout, SegmentHeader, SpillEntry};
use seawall_core::pool::Pool;
use seawall_core::recover::{Scan, scan};
use seawall_core::spill::Area;
use seawall_core::table;

use crate::Rng;

/// A unit of the pool's tables, and the bit to flip in it. Often in a file's handle, where it names another.
pub fn in_tables(rng: &Rng, slots: &[u32]) -> (usize, u64) {
    let slot = slots.get(rng.below(slots.len() as u64) as usize).copied().unwrap_or(0);
    let at = match rng.below(7) {
        6 => return (Layout::file(slot) + 160, 1 << rng.below(3)),
        0 => Layout::superblock(rng.below(2) as usize) + rng.below(104) as usize,
        1 => Layout::retired() + rng.below(32) as usize,
        2 => Layout::root(0) + rng.below(2176) as usize,
        3 => Layout::file(slot) + rng.below(8) as usize,
        4 => Layout::file(slot) + 64 + rng.below(32) as usize,
        _ => Layout::file(slot) + 128 + rng.below(360) as usize,
    };
    (at / 8 * 8, 1 << rng.below(64))
}

/// The same in what says which slots of a spill area hold what.
pub fn in_entries(rng: &Rng, pool: &Pool, area: &Area) -> (usize, u64) {
    let slot = rng.below(area.slots().into()) as u32;
    let (at, len) = SpillEntry::of(pool.layout(), slot).range();
    (at + rng.below(len as u64) as usize / 8 * 8, 1 << rng.below(64))
}

/// Flips a bit in the log. False: there is no place where it must be noticed.
pub fn in_log(rng: &Rng, pool: &Pool) -> bool {
    let Ok(files) = table::files(pool) else { return false };
    let scan = scan(pool, &files.into_iter().map(|f| (f.slot, f)).collect());
    let places: Vec<(usize, usize)> = followed(&scan, pool).chain(vouched(pool)).collect();
    let Some((at, len)) = places.get(rng.below(places.len() as u64) as usize).copied() else { return false };
    let at = at + rng.below(len as u64) as usize / 8 * 8;
    let mut word = [0; 8];
    pool.region.read(at, &mut word);
    let flipped = u64::from_le_bytes(word) ^ 1 << rng.below(64);
    pool.region.store(at, &flipped.to_le_bytes());
    true
}

/// Live records that another live one follows in their segment: where, and how long.
fn followed(scan: &Scan, pool: &Pool) -> impl Iterator<Item = (usize, usize)> {
    let layout = pool.layout();
    let mut segments: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for part in scan.live.records().flatten().filter(|part| part.at < pool.region.len()) {
        let segment = (part.at - layout.segments_at()) / layout.segment_bytes as usize;
        segments.entry(segment).or_default().push((part.at, part.header.extent()));
    }
    segments.into_values().flat_map(|mut parts| {
        parts.sort_unstable();
        parts.pop();
        parts
    })
}

/// Headers of segments that a later segment of the lane says must be there.
fn vouched(pool: &Pool) -> Vec<(usize, usize)> {
    let layout = pool.layout();
    let header = |i: u32| SegmentHeader::read(&pool.region, layout.segment(i), pool.superblock.uuid_low());
    let headers: Vec<_> = (0..layout.segments).filter_map(header).collect();
    let named = headers.iter().filter(|next| next.previous_seq != 0 && next.previous_end != 0);
    let present = named.filter(|next| header(next.previous).is_some_and(|h| h.seq == next.previous_seq));
    present.map(|next| (layout.segment(next.previous), 64)).collect()
}

/// A line that is in use, to be poisoned.
pub fn line(rng: &Rng, pool: &Pool) -> u32 {
    let layout = pool.layout();
    let used: Vec<u32> = (0..layout.segments)
        .filter(|i| {
            SegmentHeader::read(&pool.region, layout.segment(*i), pool.superblock.uuid_low()).is_some()
        })
        .collect();
    let at = match used.get(rng.below(used.len() as u64 + 1) as usize) {
        Some(segment) => layout.segment(*segment) + rng.below(8192) as usize,
        None => Layout::retired() + rng.below((layout.segments_at() - Layout::retired()) as u64) as usize,
    };
    (at / 64) as u32
}
