//! Which block of a set goes, and which may enter: the choice, as processes make it together.
//!
//! A block belongs to one set of [`WAYS`] places. Each place has a *heat* of two bits: a hit warms it by one, and
//! that is all a hit does, so lost updates cost nothing and a plain store is enough. A block that is missed is
//! remembered by a fingerprint, as a *ghost*, and enters when it is missed again while it is remembered. It takes a
//! place that is cold, the next one after the *hand*, and starts warm. When no place is cold it has to wait: only after
//! [`PATIENCE`] ghosts have come back in vain do all places cool, until one is cold. As long as there is room a block
//! enters at its first miss, cold.
//!
//! So a scan leaves no trace but ghosts, and blocks that are wanted equally often do not drive each other out. The
//! second matters behind a page cache: what stays here leaves the page cache to the others. The parts are those of
//! S3-FIFO (probation, ghosts), CLOCK (hand, counters) and TinyLFU (a newcomer must be wanted more than who is there).
//!
//! Inputs and outputs are plain values: whoever shares a set loads them, decides, and stores what changed. Not
//! handled here: what makes that safe, and which places are valid.

/// Places of a set.
pub const WAYS: usize = 16;

/// Ghosts that come back in vain before all places cool. More keeps what is there longer: better against loops and
/// behind a page cache, slower when what is wanted changes. Measured: `docs/CACHE.md`.
pub const PATIENCE: u8 = 8;

const HEAT_MAX: u32 = 3;
/// The lower bit of each heat.
const LOW: u32 = 0x5555_5555;

/// The heats of a set's places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heat(pub u32);

impl Heat {
    /// How warm a place is.
    #[inline]
    pub fn of(self, way: usize) -> u32 {
        self.0 >> (way * 2) & HEAT_MAX
    }

    /// With one place at this heat.
    #[inline]
    #[must_use]
    pub fn with(self, way: usize, heat: u32) -> Self {
        Self(self.0 & !(HEAT_MAX << (way * 2)) | heat.min(HEAT_MAX) << (way * 2))
    }

    /// After a hit of a place: the same if it cannot get warmer, and then nothing needs to be stored.
    #[inline]
    #[must_use]
    pub fn warmed(self, way: usize) -> Self {
        self.with(way, self.of(way) + 1)
    }

    /// All of them cooler by one.
    #[must_use]
    pub fn cooled(self) -> Self {
        let (high, low) = (self.0 >> 1 & LOW, self.0 & LOW);
        // 3 → 2 → 1 → 0 → 0, bit by bit.
        Self((high & low) << 1 | high & !low)
    }

    /// The places with heat 0, as bits.
    pub fn cold(self) -> u16 {
        let mut cold = !(self.0 | self.0 >> 1) & LOW;
        // Every second bit, moved together.
        for (shift, mask) in [(1, 0x3333_3333), (2, 0x0f0f_0f0f), (4, 0x00ff_00ff), (8, 0x0000_ffff)] {
            cold = (cold | cold >> shift) & mask;
        }
        cold as u16
    }
}

/// What a set remembers besides its blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Fingerprints of blocks that were missed, left, or were killed; 0 for none.
    pub ghosts: [u8; WAYS],
    /// Where the search for a victim begins.
    pub hand: u8,
    /// Which ghost is forgotten next.
    pub oldest: u8,
    /// Ghosts that came back and found no cold place, since all cooled last.
    pub refused: u8,
}

impl Memory {
    /// Remembers a block. One that is remembered already is not entered twice.
    pub fn remember(&mut self, fingerprint: u8) {
        if !self.ghosts.contains(&fingerprint) {
            self.ghosts[usize::from(self.oldest) % WAYS] = fingerprint;
            self.oldest = (self.oldest + 1) % WAYS as u8;
        }
    }

    /// Forgets a block; whether it was remembered.
    pub fn recall(&mut self, fingerprint: u8) -> bool {
        let found = self.ghosts.iter_mut().find(|ghost| **ghost == fingerprint);
        found.map(|ghost| *ghost = 0).is_some()
    }
}

/// Where a block is to enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The place.
    pub way: usize,
    /// The set's heats, with the new block's.
    pub heat: Heat,
}

/// Decides about a missed block: the place it may have, or `None` if it may not enter. `memory` is changed either
/// way. `free` are the places without a block, `busy` the ones that must be left alone, as bits.
pub fn admit(fingerprint: u8, heat: Heat, memory: &mut Memory, free: u16, busy: u16) -> Option<Place> {
    let came_back = memory.recall(fingerprint);
    if let Some(way) = next(free & !busy, memory.hand) {
        return Some(Place { way, heat: heat.with(way, 0) });
    }
    let place = if came_back { contest(heat, memory, busy) } else { None };
    if place.is_none() {
        memory.remember(fingerprint);
    }
    place
}

/// A cold place, for one that came back; after enough of them have come in vain, the first that cools.
fn contest(mut heat: Heat, memory: &mut Memory, busy: u16) -> Option<Place> {
    if heat.cold() & !busy == 0 {
        memory.refused = memory.refused.saturating_add(1);
        if memory.refused < PATIENCE || busy == u16::MAX {
            return None;
        }
        memory.refused = 0;
    }
    while heat.cold() & !busy == 0 {
        heat = heat.cooled();
    }
    let way = next(heat.cold() & !busy, memory.hand)?;
    memory.hand = (way as u8 + 1) % WAYS as u8;
    Some(Place { way, heat: heat.with(way, 1) })
}

/// The first of these places at or after the hand, around the set.
fn next(places: u16, hand: u8) -> Option<usize> {
    let turned = places.rotate_right(u32::from(hand) % WAYS as u32);
    (places != 0).then(|| (turned.trailing_zeros() as usize + usize::from(hand)) % WAYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heats_warm_one_by_one_and_cool_together() {
        let mut heat = Heat::default();
        for (way, times) in [(0, 1), (7, 2), (15, 9)] {
            (0..times).for_each(|_| heat = heat.warmed(way));
        }
        let all = |heat: Heat| [0, 7, 15].map(|way| heat.of(way));
        assert_eq!(all(heat), [1, 2, 3]);
        assert_eq!(all(heat.cooled()), [0, 1, 2]);
        assert_eq!(all(heat.cooled().cooled().cooled().cooled()), [0, 0, 0]);
        assert_eq!(heat.cold(), !(1 << 0 | 1 << 7 | 1 << 15));
    }

    /// A set of warm places, and who was let in of so many blocks that were each missed `times` times in a row.
    fn let_in(fingerprints: u8, times: usize, heat: Heat) -> usize {
        let (mut heat, mut memory, mut entered) = (heat, Memory::default(), 0);
        for fingerprint in 1..=fingerprints {
            for _ in 0..times {
                let Some(place) = admit(fingerprint, heat, &mut memory, 0, 0) else { continue };
                (heat, entered) = (place.heat, entered + 1);
            }
        }
        entered
    }

    #[test]
    fn a_scan_leaves_nothing_but_ghosts() {
        assert_eq!(let_in(200, 1, Heat::default()), 0);
        assert_eq!(let_in(10, 2, Heat::default()), 10);
    }

    #[test]
    fn the_equally_wanted_do_not_drive_each_other_out() {
        let warm = Heat(u32::MAX);
        assert_eq!(let_in(PATIENCE - 1, 2, warm), 0);
        assert_eq!(let_in(PATIENCE, 2, warm), 1, "all are cold now, but for the newcomer");
    }

    #[test]
    fn who_comes_back_gets_a_cold_place_and_room_is_used_first() {
        let mut memory = Memory::default();
        let heat = Heat(u32::MAX).with(6, 0);
        assert_eq!(admit(9, heat, &mut memory, 0, 0), None);
        assert_eq!(admit(9, heat, &mut memory, 0, 0).map(|place| place.way), Some(6));
        assert_eq!(admit(8, heat, &mut memory, 1 << 5, 0).map(|place| place.way), Some(5));
    }

    #[test]
    fn busy_places_are_left_alone() {
        let mut memory = Memory::default();
        for fingerprint in (1..100).flat_map(|n| [n, n]) {
            let place = admit(fingerprint, Heat::default(), &mut memory, 0, 0xfffe);
            assert!(place.is_none_or(|place| place.way == 0));
        }
        assert_eq!(admit(200, Heat::default(), &mut memory, u16::MAX, u16::MAX), None);
    }
}
