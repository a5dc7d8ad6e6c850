//! The spill area: how the pool names it, how it begins, and which of its slots holds which segment.

use seawall_media::{Region, assert_layout, crc32c, fence, mix};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::Layout;

const MAGIC: u32 = u32::from_le_bytes(*b"SWsp");
/// The first bytes of an area.
pub const AREA_MAGIC: [u8; 8] = *b"SWSPILL\x01";
/// Longest path of an area.
pub const AREA_PATH_MAX: usize = 960;
/// Where an area's first slot is.
pub const AREA_SLOTS_AT: u64 = 64 << 10;
/// From the beginning of the zone to its first entry.
const ENTRIES_AT: usize = 4096;

/// At the beginning of the zone: which area the pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SpillDescriptor {
    magic: u32,
    /// Slots of the area, and entries behind this descriptor.
    pub slots: u32,
    /// Identity of the area, drawn at random when it was made.
    pub area: [u8; 16],
    /// Bytes of `path` in use.
    pub path_len: u32,
    reserved: u32,
    /// Where the area is.
    pub path: [u8; AREA_PATH_MAX],
    reserved_too: u32,
    checksum: u32,
}

assert_layout!(SpillDescriptor, 1000, {
    magic @ 0, slots @ 4, area @ 8, path_len @ 24, reserved @ 28, path @ 32, reserved_too @ 992, checksum @ 996,
});

impl SpillDescriptor {
    /// Names an area. `None`: its path is too long.
    pub fn new(slots: u32, area: [u8; 16], path: &[u8]) -> Option<Self> {
        let mut d = Self::new_zeroed();
        (d.magic, d.slots, d.area, d.path_len) = (MAGIC, slots, area, u32::try_from(path.len()).ok()?);
        d.path.get_mut(..path.len())?.copy_from_slice(path);
        d.checksum = d.sum();
        Some(d)
    }

    /// Where the area is.
    pub fn path(&self) -> &[u8] {
        &self.path[..self.path_len as usize]
    }

    /// Stores it; persisted after the next fence.
    pub fn store(&self, region: &Region, layout: Layout) {
        region.store(layout.spilled_at(), self.as_bytes());
    }

    /// Reads it, or `None` if it is damaged, or names more slots than the zone has entries.
    pub fn read(region: &Region, layout: Layout) -> Option<Self> {
        let mut d = Self::new_zeroed();
        region.read(layout.spilled_at(), d.as_mut_bytes());
        let valid = d.magic == MAGIC && d.checksum == d.sum() && d.path_len as usize <= AREA_PATH_MAX;
        let end = layout.spilled_at() + bytes_for(d.slots);
        (valid && end <= region.len()).then_some(d)
    }

    fn sum(&self) -> u32 {
        crc32c(&self.as_bytes()[..core::mem::offset_of!(Self, checksum)])
    }
}

/// The first block of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AreaHeader {
    magic: [u8; 8],
    /// The pool it belongs to.
    pub pool: [u8; 16],
    /// Its own identity: the one the pool names.
    pub area: [u8; 16],
    /// Bytes of a slot, which are those of a segment of the pool.
    pub segment_bytes: u32,
    /// Slots.
    pub slots: u32,
    reserved: u32,
    checksum: u32,
}

assert_layout!(AreaHeader, 56, {
    magic @ 0, pool @ 8, area @ 24, segment_bytes @ 40, slots @ 44, reserved @ 48, checksum @ 52,
});

impl AreaHeader {
    /// The header of a new area.
    pub fn new(pool: [u8; 16], area: [u8; 16], segment_bytes: u32, slots: u32) -> Self {
        let mut h = Self::new_zeroed();
        (h.magic, h.pool, h.area, h.segment_bytes, h.slots) = (AREA_MAGIC, pool, area, segment_bytes, slots);
        h.checksum = h.sum();
        h
    }

    /// Reads these bytes, if they are a header.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (h, _) = Self::read_from_prefix(bytes).ok()?;
        (h.magic == AREA_MAGIC && h.checksum == h.sum()).then_some(h)
    }

    fn sum(&self) -> u32 {
        crc32c(&self.as_bytes()[..core::mem::offset_of!(Self, checksum)])
    }
}

/// Where slot `slot` is in the area.
pub fn slot_at(slot: u32, segment_bytes: u32) -> u64 {
    AREA_SLOTS_AT + u64::from(slot) * u64::from(segment_bytes)
}

/// Bytes of the zone for an area with this many slots.
pub const fn bytes_for(slots: u32) -> usize {
    ENTRIES_AT + slots as usize * SpillEntry::BYTES
}

/// What a slot holds. Above the retired LSN it is a part of the log that exists nowhere else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spilled {
    /// The segment, by the number of its use; 0 if the slot has never held one.
    pub seq: u64,
    /// The highest LSN in it.
    pub last_lsn: u64,
    /// CRC-32C of the whole slot.
    pub sum: u32,
}

/// View of a slot's entry: two checked copies, written one after the other with a fence behind each, like those of a
/// [`Cell`](super::Cell). The one with the higher `last_lsn` counts: a slot is free when its `last_lsn` is retired, and
/// the segment that is copied to it next is not. (Its `seq` may be lower: one lane may fill a single segment while
/// another fills three.) Two damaged copies are damage.
#[derive(Clone, Copy)]
pub struct SpillEntry {
    at: usize,
}

impl SpillEntry {
    /// Bytes it occupies: a line.
    pub const BYTES: usize = 64;
    const COPY: usize = 32;

    /// The entry of a slot.
    pub fn of(layout: Layout, slot: u32) -> Self {
        Self { at: layout.spilled_at() + ENTRIES_AT + slot as usize * Self::BYTES }
    }

    /// Where it lies.
    pub const fn range(self) -> (usize, usize) {
        (self.at, Self::BYTES)
    }

    /// Marks the slot as never used; persisted after the next fence.
    pub fn format(self, region: &Region) {
        (0..2).for_each(|copy| self.put(region, copy, Spilled::default()));
    }

    /// What the slot holds, or `None` if both copies are damaged.
    pub fn load(self, region: &Region) -> Option<Spilled> {
        let [a, b] = [0, 1].map(|copy| self.copy(region, copy));
        if order(a) >= order(b) { a.or(b) } else { b }
    }

    /// Writes all these entries and waits until they are persisted. The caller is their only writer, and has seen their
    /// present content persisted.
    pub fn change(region: &Region, all: &[(Self, Spilled)]) {
        for turn in 0..2 {
            for (entry, value) in all {
                let [a, b] = [0, 1].map(|copy| order(entry.copy(region, copy)));
                entry.put(region, usize::from(a > b), *value);
                debug_assert!(turn == 0 || a.max(b) == value.last_lsn);
            }
            fence();
        }
    }

    fn put(self, region: &Region, copy: usize, value: Spilled) {
        let at = self.at + copy * Self::COPY;
        let words = [value.seq, value.last_lsn, u64::from(value.sum), self.check(&value)];
        (0..).zip(words).for_each(|(i, word): (usize, u64)| region.set_u64(at + i * 8, word));
    }

    fn copy(self, region: &Region, copy: usize) -> Option<Spilled> {
        let mut bytes = [0; Self::COPY];
        region.read(self.at + copy * Self::COPY, &mut bytes);
        let word = |i: usize| u64::from_le_bytes(bytes[i * 8..][..8].try_into().unwrap_or_default());
        let value = Spilled { seq: word(0), last_lsn: word(1), sum: word(2) as u32 };
        (word(2) >> 32 == 0 && word(3) == self.check(&value)).then_some(value)
    }

    /// Mixes in the position, so that a misdirected write does not look valid.
    fn check(self, value: &Spilled) -> u64 {
        let words = [value.last_lsn, u64::from(value.sum), (self.at as u64).rotate_left(40) ^ 0x5ea_7a12];
        words.iter().fold(mix(value.seq), |sum, word| mix(sum ^ word))
    }
}

/// Of two copies the later one has the higher value; a damaged one has none.
fn order(copy: Option<Spilled>) -> u64 {
    copy.map_or(0, |copy| copy.last_lsn)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> (Region, SpillEntry) {
        let file = tempfile::tempfile_in("/dev/shm").expect("a file");
        file.set_len(4096).expect("room");
        (Region::map(&file, 4096, false).expect("a mapping"), SpillEntry { at: 128 })
    }

    #[test]
    fn a_damaged_copy_does_not_bring_an_older_segment_back_and_two_are_damage() {
        let (region, entry) = entry();
        assert_eq!(entry.load(&region), None, "zeros are no entry");
        let [old, new] = [7, 9].map(|seq| Spilled { seq, last_lsn: seq + 1, sum: 0xdead_beef });
        for damaged in [128 + 8, 160 + 8] {
            entry.format(&region);
            assert_eq!(entry.load(&region), Some(Spilled::default()));
            SpillEntry::change(&region, &[(entry, old)]);
            SpillEntry::change(&region, &[(entry, new)]);
            region.set_u64(damaged, 1);
            assert_eq!(entry.load(&region), Some(new));
        }
        region.set_u64(128, 1);
        assert_eq!(entry.load(&region), None);
    }

    #[test]
    fn a_segment_that_began_before_the_retired_one_replaces_it() {
        let [old, new] = [(9, 10), (7, 12)].map(|(seq, last_lsn)| Spilled { seq, last_lsn, sum: 5 });
        for damaged in [None, Some(128 + 8), Some(160 + 8)] {
            let (region, entry) = entry();
            entry.format(&region);
            SpillEntry::change(&region, &[(entry, old)]);
            SpillEntry::change(&region, &[(entry, new)]);
            damaged.into_iter().for_each(|at| region.set_u64(at, 1));
            assert_eq!(entry.load(&region), Some(new), "{damaged:?}");
        }
    }

    #[test]
    fn a_torn_update_leaves_the_old_entry() {
        let (region, entry) = entry();
        entry.format(&region);
        let [old, new] = [7, 9].map(|seq| Spilled { seq, last_lsn: seq + 1, sum: 5 });
        SpillEntry::change(&region, &[(entry, old)]);
        entry.put(&region, 0, new);
        region.set_u64(128 + 8, old.last_lsn);
        assert_eq!(entry.load(&region), Some(old));
    }
}
