//! Which block of a set goes, and which may enter: the choice, as processes make it together.
//!
//! A block belongs to one set of [`WAYS`] places. Each place has a *heat* of two bits: a hit warms it by one, and
//! that is all a hit does, so lost updates cost nothing and a plain store is enough. A block that is missed is
//! remembered by a fingerprint, as a *ghost*, and enters when it is missed again while it is remembered. It takes a
//! place that is cold, the next one after the *hand*, and starts warm. When no place is cold it has to wait: only after
//! [`PATIENCE`] ghosts have come back in vain do all places cool, until one is cold. As long as there is room a block
//! enters at its first miss, cold.
//!
//! Of a file that is to be [kept](Policy::Keep) a block enters at its first miss: where there is room, else in the coldest
//! place of another file's. Such places belong to [kept](Memory::kept) blocks from then on, and no other file's block
//! takes or cools them. They are [`KEPT_MAX`] of a set's at most. With so many of them a kept block is one like any other,
//! but that it may also take a cold place of its own kind.
//!
//! So a scan leaves no trace but ghosts, and blocks that are wanted equally often do not drive each other out. The
//! second matters behind a page cache: what stays here leaves the page cache to the others. The parts are those of
//! S3-FIFO (probation, ghosts), CLOCK (hand, counters) and TinyLFU (a newcomer must be wanted more than the block that is there).
//!
//! Inputs and outputs are plain values: whoever shares a set loads them, decides, and stores what changed. Not
//! handled here: what makes that safe, and which places are valid.

/// Places of a set.
pub const WAYS: usize = 16;

/// Ghosts that come back in vain before all places cool. More keeps what is there longer: better against loops and
/// behind a page cache, slower when what is wanted changes. Measured: `docs/internals/CACHE.md`.
pub const PATIENCE: u8 = 8;

/// Places of a set that kept blocks have to themselves, at most: three quarters, so that they starve nobody.
pub const KEPT_MAX: u32 = 12;

/// The most kept blocks of a set that has only these places: three quarters, so that others have one at least.
pub const fn kept_max(places: u16) -> u32 {
    places.count_ones() * KEPT_MAX / WAYS as u32
}

const HEAT_MAX: u32 = 3;
/// The lower bit of each heat.
const LOW: u32 = 0x5555_5555;

/// What is to be done with a file's blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// They compete for their places.
    #[default]
    Default,
    /// They enter at once, and blocks of other files do not drive them out.
    Keep,
    /// They do not enter, and are not looked for.
    None,
}

impl Policy {
    /// The number that stands for it in a zone.
    pub const fn number(self) -> u32 {
        match self {
            Self::Default => 0,
            Self::Keep => 1,
            Self::None => 2,
        }
    }

    /// The policy with this number; an unknown one is the default.
    pub const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Keep,
            2 => Self::None,
            _ => Self::Default,
        }
    }
}

/// A block that was missed, and has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newcomer {
    /// What is remembered of it.
    pub fingerprint: u8,
    /// Its file's policy.
    pub policy: Policy,
    /// Nobody missed it: it is brought in case it is wanted. It drives nobody out, unless it is to be kept, and
    /// leaves no trace if it does not enter.
    pub is_early: bool,
}

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

    /// These places cooler by one.
    #[must_use]
    pub fn cooled(self, ways: u16) -> Self {
        let (high, low) = (self.0 >> 1 & LOW, self.0 & LOW);
        // 3 → 2 → 1 → 0 → 0, bit by bit.
        let all = (high & low) << 1 | high & !low;
        let mask = pairs(ways);
        Self(self.0 & !mask | all & mask)
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

/// Both bits of each of these places' heats.
fn pairs(ways: u16) -> u32 {
    let mut bits = u32::from(ways);
    // Apart, so that every second bit is free.
    for (shift, mask) in [(8, 0x00ff_00ff), (4, 0x0f0f_0f0f), (2, 0x3333_3333), (1, LOW)] {
        bits = (bits | bits << shift) & mask;
    }
    bits | bits << 1
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
    /// The places that kept blocks have to themselves, as bits. What it says of a place without a block means nothing.
    pub kept: u16,
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
pub fn admit(newcomer: Newcomer, heat: Heat, memory: &mut Memory, free: u16, busy: u16) -> Option<Place> {
    admit_in(u16::MAX, newcomer, heat, memory, free, busy)
}

/// The same in a set of only these places.
pub fn admit_in(
    places: u16,
    newcomer: Newcomer,
    heat: Heat,
    memory: &mut Memory,
    free: u16,
    busy: u16,
) -> Option<Place> {
    let (free, busy) = (free & places, busy | !places);
    memory.kept &= places;
    if memory.kept.count_ones() > kept_max(places) {
        // Of more places than there are now; which ones stay kept is found out when they are arranged anew.
        memory.kept = 0;
    }
    // A place that is being filled has no block yet, and is somebody's all the same.
    memory.kept &= !free | busy;
    let may_be_kept = newcomer.policy == Policy::Keep && memory.kept.count_ones() < kept_max(places);
    let contested = if newcomer.policy == Policy::Keep { u16::MAX } else { !memory.kept };
    let came_back = memory.recall(newcomer.fingerprint);
    let place = match next(free & !busy, memory.hand) {
        Some(way) => Some(Place { way, heat: heat.with(way, 0) }),
        None if may_be_kept => seize(heat, memory, busy),
        None if came_back && !newcomer.is_early => contest(heat, memory, contested, busy),
        None => None,
    };
    match place {
        Some(place) if may_be_kept => memory.kept |= 1 << place.way,
        None if came_back || !newcomer.is_early => memory.remember(newcomer.fingerprint),
        _ => {}
    }
    place
}

/// The coldest place that is not kept, for one that is to be.
fn seize(heat: Heat, memory: &mut Memory, busy: u16) -> Option<Place> {
    let places = !(memory.kept | busy);
    let mut coldest = heat;
    while coldest.cold() & places == 0 && places != 0 {
        coldest = coldest.cooled(places);
    }
    let way = take(coldest.cold() & places, memory)?;
    Some(Place { way, heat: heat.with(way, 0) })
}

/// A cold one of these places, for one that came back; after enough of them have come in vain, the first that cools.
fn contest(mut heat: Heat, memory: &mut Memory, places: u16, busy: u16) -> Option<Place> {
    if heat.cold() & places & !busy == 0 {
        memory.refused = memory.refused.saturating_add(1);
        if memory.refused < PATIENCE || places & !busy == 0 {
            return None;
        }
        memory.refused = 0;
    }
    while heat.cold() & places & !busy == 0 {
        heat = heat.cooled(places);
    }
    let way = take(heat.cold() & places & !busy, memory)?;
    Some(Place { way, heat: heat.with(way, 1) })
}

/// The next of these places, and the hand moves on.
fn take(places: u16, memory: &mut Memory) -> Option<usize> {
    let way = next(places, memory.hand)?;
    memory.hand = (way as u8 + 1) % WAYS as u8;
    Some(way)
}

/// The first of these places at or after the hand, around the set.
fn next(places: u16, hand: u8) -> Option<usize> {
    let turned = places.rotate_right(u32::from(hand) % WAYS as u32);
    (places != 0).then(|| (turned.trailing_zeros() as usize + usize::from(hand)) % WAYS)
}

#[cfg(test)]
mod tests;
