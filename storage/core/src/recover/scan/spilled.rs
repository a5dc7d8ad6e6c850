//! The spill area's part of the log: the content of its slots above the retired LSN.

use std::collections::{BTreeMap, BTreeSet};

use seawall_media::Region;

use super::Damage;
use super::segment::{self, Place, Segment};
use crate::format::{SpillEntry, Spilled};
use crate::pool::Pool;

/// Live segments by slot, each once. A segment that an entry vouches for and that is not there is damage.
pub(super) fn segments(pool: &Pool, retired: u64, damage: &mut Vec<Damage>) -> BTreeMap<u32, Segment> {
    let entries = live(pool, retired, damage);
    let mut found = BTreeMap::new();
    let Some(area) = pool.area.as_ref().filter(|_| !entries.is_empty()) else { return found };
    if area.trouble().is_some() {
        damage.push(Damage::Area { segments: entries.len() as u32 });
        return found;
    }
    let layout = pool.layout();
    let mut bytes = vec![0; layout.segment_bytes as usize];
    let memory = crate::pool::block::nameless(bytes.len() as u64);
    let memory = memory.ok().and_then(|file| Region::map(&file, bytes.len() as u64, false).ok());
    for (slot, entry) in entries {
        let at = pool.region.len() + slot as usize * bytes.len();
        let there = memory.as_ref().filter(|_| area.slot(slot, &entry, &mut bytes)).and_then(|memory| {
            memory.copy_in(0, &bytes);
            let place = Place { memory, base: 0, bytes: bytes.len(), at };
            segment::read(&place, pool.superblock.uuid_low(), retired)
        });
        match there.filter(|segment| segment.header.seq == entry.seq) {
            Some(segment) => drop(found.insert(slot, segment)),
            None => damage.push(Damage::Slot { slot }), // It is the log, and cannot be read.
        }
    }
    found
}

/// Entries above the retired LSN. A daemon that was killed may have left a segment in two slots: the first one is
/// enough.
fn live(pool: &Pool, retired: u64, damage: &mut Vec<Damage>) -> Vec<(u32, Spilled)> {
    let slots = pool.area.as_ref().map_or(0, crate::spill::Area::slots);
    let (mut seen, mut live) = (BTreeSet::new(), Vec::new());
    for slot in 0..slots {
        match SpillEntry::of(pool.layout(), slot).load(&pool.region) {
            None => damage.push(Damage::Slot { slot }),
            Some(entry) if entry.last_lsn > retired && seen.insert(entry.seq) => live.push((slot, entry)),
            Some(_) => {}
        }
    }
    live
}
