//! What was stored and may or may not survive: the crash contract of `seawall-media`, in numbers.
//!
//! Per 8-byte unit: every value stored since it was last persisted, in order, and which logical thread has
//! started its write-back. A fence of a thread persists what that thread flushed. At a crash each unit
//! holds its persisted value or any later one. Bytes are kept by line, eight units in one version.

use std::collections::{BTreeMap, BTreeSet};

use crate::Rng;

/// Bytes of a line.
pub const LINE: usize = 64;
/// Logical threads that can have flushes under way.
pub const THREADS: usize = 32;

/// One line's eight units.
pub type Units = [u64; 8];

/// A store to a line.
struct Version {
    /// Units it stored and that are not persisted or overtaken yet.
    units: u8,
    values: Units,
    /// Per thread: units whose write-back it started.
    flushed: [u8; THREADS],
}

/// How many of the un-fenced units survive.
#[derive(Clone, Copy, Debug)]
pub enum Survival {
    /// Nothing that was not fenced.
    None,
    /// Everything, as if the caches had been written back.
    All,
    /// Each unit alone, this many of 256.
    Some(u8),
    /// Each line as a whole, this many of 256.
    Lines(u8),
    /// Everything but one line: what a long write misses may be a single line of its front.
    AllButOne,
}

impl Survival {
    /// A kind of crash.
    pub fn draw(rng: &Rng) -> Self {
        match rng.below(9) {
            0 => Self::None,
            1 => Self::All,
            2 => Self::Some(128),
            3 => Self::Some(240),
            4 => Self::Some(16),
            5 => Self::Lines(128),
            6 => Self::Lines(230),
            7 => Self::AllButOne,
            _ => Self::Some(rng.below(256) as u8),
        }
    }

    fn of(share: u8, rng: &Rng) -> bool {
        rng.below(256) < u64::from(share)
    }
}

/// Everything that is not persisted yet.
#[derive(Default)]
pub struct Pending {
    lines: BTreeMap<u32, Vec<Version>>,
    flushing: [BTreeSet<u32>; THREADS],
}

/// The lines of a range, each with the mask of its units inside the range.
fn lines(at: usize, len: usize) -> impl Iterator<Item = (u32, u8)> {
    let (first, end) = (at / 8, (at + len).div_ceil(8));
    (first / 8..end.div_ceil(8)).map(move |line| {
        let from = first.saturating_sub(line * 8).min(8);
        let to = (end - line * 8).min(8);
        (line as u32, ((1u16 << to) - (1u16 << from)) as u8)
    })
}

impl Pending {
    /// A store: `read` gives a line as it is visible now.
    pub fn stored(&mut self, at: usize, len: usize, read: impl Fn(u32) -> Units) {
        if len == 0 {
            return;
        }
        for (line, units) in lines(at, len) {
            let version = Version { units, values: read(line), flushed: [0; THREADS] };
            self.lines.entry(line).or_default().push(version);
        }
    }

    /// A write-back was started.
    pub fn flushed(&mut self, at: usize, len: usize, thread: usize) {
        if len == 0 {
            return;
        }
        for (line, units) in lines(at, len) {
            let Some(versions) = self.lines.get_mut(&line) else { continue };
            for version in versions {
                version.flushed[thread] |= version.units & units;
            }
            self.flushing[thread].insert(line);
        }
    }

    /// A fence: `persist` gets each unit's new value, oldest first.
    pub fn fenced(&mut self, thread: usize, mut persist: impl FnMut(u32, usize, u64)) {
        for line in std::mem::take(&mut self.flushing[thread]) {
            let Some(versions) = self.lines.get_mut(&line) else { continue };
            for i in 0..versions.len() {
                let done = versions[i].flushed[thread] & versions[i].units;
                for unit in (0..8).filter(|unit| done >> unit & 1 == 1) {
                    persist(line, unit, versions[i].values[unit]);
                }
                for version in &mut versions[..=i] {
                    version.units &= !done;
                }
            }
            versions.retain(|version| version.units != 0);
            if versions.is_empty() {
                self.lines.remove(&line);
            }
        }
    }

    /// The thread is gone: it will never fence. What it flushed stays possible.
    pub fn died(&mut self, thread: usize) {
        for line in std::mem::take(&mut self.flushing[thread]) {
            for version in self.lines.get_mut(&line).into_iter().flatten() {
                version.flushed[thread] = 0;
            }
        }
    }

    /// The lines that a crash now leaves other than persisted. `persisted` gives a line's sure content.
    pub fn crash(
        &self,
        survival: Survival,
        rng: &Rng,
        persisted: impl Fn(u32) -> Units,
    ) -> Vec<(u32, Units)> {
        if matches!(survival, Survival::None) {
            return Vec::new();
        }
        let lost = rng.below(self.lines.len().max(1) as u64) as usize;
        let draw = |(i, (line, versions)): (usize, (&u32, &Vec<Version>))| {
            let mut units = persisted(*line);
            let whole_line = match survival {
                Survival::Lines(share) => Survival::of(share, rng),
                Survival::AllButOne => i != lost,
                _ => true,
            };
            for version in versions.iter().filter(|_| whole_line) {
                for unit in (0..8).filter(|unit| version.units >> unit & 1 == 1) {
                    let survives = match survival {
                        Survival::Some(share) => Survival::of(share, rng),
                        _ => true,
                    };
                    if survives {
                        units[unit] = version.values[unit];
                    }
                }
            }
            (*line, units)
        };
        self.lines.iter().enumerate().map(draw).collect()
    }

    /// The lines that hold something unsure.
    pub fn unsure(&self) -> impl Iterator<Item = u32> {
        self.lines.keys().copied()
    }

    /// How many lines hold something unsure.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// True if a crash now would lose nothing.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_into_lines_and_units() {
        let all: Vec<_> = lines(8 * 7 + 3, 14).collect();
        assert_eq!(all, [(0, 0x80), (1, 0x03)]);
        assert_eq!(lines(64, 64).collect::<Vec<_>>(), [(1, 0xff)]);
        assert_eq!(lines(0, 8).collect::<Vec<_>>(), [(0, 1)]);
    }

    #[test]
    fn only_the_flushers_own_fence_persists_and_order_holds() {
        let mut pending = Pending::default();
        pending.stored(0, 8, |_| [1; 8]);
        pending.flushed(0, 8, 0);
        pending.stored(0, 8, |_| [2; 8]);
        let mut persisted = Vec::new();
        pending.fenced(1, |_, _, v| persisted.push(v));
        assert!(persisted.is_empty());
        pending.fenced(0, |_, _, v| persisted.push(v));
        assert_eq!(persisted, [1]);
        let rng = Rng::new(1);
        assert_eq!(pending.crash(Survival::All, &rng, |_| [1; 8]), [(0, [2, 1, 1, 1, 1, 1, 1, 1])]);
        pending.flushed(0, 8, 3);
        pending.fenced(3, |_, _, v| persisted.push(v));
        assert!(pending.is_empty() && persisted == [1, 2]);
    }
}
