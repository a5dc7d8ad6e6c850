//! The three kinds of words on which everything turns: plain values here, atomics in the zone.

/// A set's word: which places hold a valid block, how many writes are under way, and how many there were.
///
/// ```text
///  63                          24 23     16 15           0
/// ┌──────────────────────────────┬─────────┬──────────────┐
/// │ version                      │ writers │ valid places │
/// └──────────────────────────────┴─────────┴──────────────┘
/// ```
///
/// They are in one word so that a fill is published by the same compare-and-swap that proves that no write of this
/// set began since. The version would have to come around, 2⁴⁰ writes of one set, within one fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetWord(pub u64);

impl SetWord {
    const WRITER: u64 = 1 << 16;
    const WRITERS_MAX: u64 = 0xff;
    const VERSION: u64 = 1 << 24;

    /// The places with a valid block, as bits.
    #[inline]
    pub fn valid(self) -> u16 {
        self.0 as u16
    }

    /// Writes under way. At 255 it is no longer counted, and stays until [`reset`](Self::reset).
    #[inline]
    pub fn writers(self) -> u64 {
        self.0 >> 16 & Self::WRITERS_MAX
    }

    /// Counts writes that began.
    #[inline]
    pub fn version(self) -> u64 {
        self.0 >> 24
    }

    /// A write began.
    #[inline]
    #[must_use]
    pub fn marked(self) -> Self {
        let writer = if self.writers() == Self::WRITERS_MAX { 0 } else { Self::WRITER };
        Self(self.0.wrapping_add(Self::VERSION) + writer)
    }

    /// A write ended.
    #[inline]
    #[must_use]
    pub fn unmarked(self) -> Self {
        let is_counted = (1..Self::WRITERS_MAX).contains(&self.writers());
        Self(self.0 - if is_counted { Self::WRITER } else { 0 })
    }

    /// No writes are under way.
    #[must_use]
    pub fn reset(self) -> Self {
        Self(self.0 & !(Self::WRITERS_MAX * Self::WRITER))
    }

    /// With a valid block in this place.
    #[inline]
    #[must_use]
    pub fn with(self, way: usize) -> Self {
        Self(self.0 | 1 << way)
    }

    /// With only these places valid.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn only(self, valid: u16) -> Self {
        Self((self.0 & !0xffff) | u64::from(valid))
    }
}

/// A place's tag: the checksum of its block and when it came; or that it has none, and who is filling it, if anybody.
///
/// ```text
///  63      62      48 47      32 31                  0
/// ┌───────┬──────────┬──────────┬─────────────────────┐
/// │ empty │ sequence │ stamp    │ checksum, or filler │
/// └───────┴──────────┴──────────┴─────────────────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(pub u64);

impl Tag {
    const EMPTY: u64 = 1 << 63;
    const NOBODY: u32 = u32::MAX;
    const SEQUENCE: u64 = 1 << 48;

    fn next_sequence(self) -> u64 {
        self.0.wrapping_add(Self::SEQUENCE) & !Self::EMPTY & !(Self::SEQUENCE - 1)
    }

    /// There is a whole block in the place. In any other nothing can be believed.
    #[inline]
    pub fn is_filled(self) -> bool {
        self.0 & Self::EMPTY == 0
    }

    /// The operation that is filling it, by its number.
    pub fn filler(self) -> Option<u32> {
        Some(self.0 as u32).filter(|filler| !self.is_filled() && *filler != Self::NOBODY)
    }

    /// The checksum of block, key and stamp.
    #[inline]
    pub fn checksum(self) -> u32 {
        self.0 as u32
    }

    /// The sync of its file that makes the block one the disk holds for sure.
    pub fn stamp(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// Operation `filler` begins to fill it.
    #[must_use]
    pub fn claimed(self, filler: u32) -> Self {
        Self(self.next_sequence() | Self::EMPTY | u64::from(filler))
    }

    /// Filled.
    #[must_use]
    pub fn filled(self, checksum: u32, stamp: u16) -> Self {
        Self(self.next_sequence() | u64::from(stamp) << 32 | u64::from(checksum))
    }

    /// Given up: nothing is in it, and nobody is filling it.
    #[must_use]
    pub fn given_up(self) -> Self {
        self.claimed(Self::NOBODY)
    }
}

/// A file's word: which incarnation of it is served, if any.
///
/// ```text
///  63    56 55      48 47       32 31                   0
/// ┌────────┬──────────┬───────────┬──────────────────────┐
/// │ flags  │ changers │ tenant    │ incarnation          │
/// └────────┴──────────┴───────────┴──────────────────────┘
/// ```
///
/// An incarnation is drawn from one sequence for the zone and never used again: a new one is what kills all blocks
/// of a file at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileWord(pub u64);

impl FileWord {
    const CHANGER: u64 = 1 << 48;
    const CHANGERS_MAX: u64 = 0xff;
    /// The slot has a tenant.
    pub const USED: u64 = 1 << 56;
    /// It was verified since the zone was opened, and everybody who writes it says so.
    pub const SERVED: u64 = 1 << 57;
    /// Somebody may write it who does not say so, or its content is not certain.
    pub const DISTRUSTED: u64 = 1 << 58;
    /// The daemon looks whether somebody writes it who does not say so.
    pub const SUSPENDED: u64 = 1 << 59;
    /// Somebody asked that it be left alone.
    pub const PASSED: u64 = 1 << 60;

    /// What its blocks' keys begin with.
    #[inline]
    pub fn incarnation(self) -> u32 {
        self.0 as u32
    }

    /// Which of the slot's tenants it is.
    #[inline]
    pub fn tenant(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// Changes of the whole file under way. At 255 it is no longer counted.
    pub fn changers(self) -> u64 {
        self.0 >> 48 & Self::CHANGERS_MAX
    }

    /// True if blocks of it may be served and filled.
    #[inline]
    pub fn is_open(self) -> bool {
        let closed = Self::SUSPENDED | Self::PASSED | Self::DISTRUSTED | (Self::CHANGERS_MAX * Self::CHANGER);
        let flags = Self::USED | Self::SERVED | closed;
        self.0 & flags == Self::USED | Self::SERVED && self.incarnation() != 0
    }

    /// True if this flag is set.
    pub fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    /// With another incarnation.
    #[must_use]
    pub fn reborn(self, incarnation: u32) -> Self {
        Self((self.0 & !u64::from(u32::MAX)) | u64::from(incarnation))
    }

    /// A change began, with this incarnation.
    #[must_use]
    pub fn marked(self, incarnation: u32) -> Self {
        let changer = if self.changers() == Self::CHANGERS_MAX { 0 } else { Self::CHANGER };
        Self(self.reborn(incarnation).0 + changer)
    }

    /// A change ended.
    #[must_use]
    pub fn unmarked(self) -> Self {
        let is_counted = (1..Self::CHANGERS_MAX).contains(&self.changers());
        Self(self.0 - if is_counted { Self::CHANGER } else { 0 })
    }

    /// No changes are under way.
    #[must_use]
    pub fn reset(self) -> Self {
        Self(self.0 & !(Self::CHANGERS_MAX * Self::CHANGER))
    }

    /// With or without a flag.
    #[must_use]
    pub fn flagged(self, flag: u64, is_set: bool) -> Self {
        Self(if is_set { self.0 | flag } else { self.0 & !flag })
    }

    /// The slot without a tenant; the next one is another.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn vacated(self) -> Self {
        Self(u64::from(self.tenant().wrapping_add(1)) << 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_counted_and_versions_only_grow() {
        let word = SetWord(0xbeef).marked().marked();
        assert_eq!((word.valid(), word.writers(), word.version()), (0xbeef, 2, 2));
        let word = word.unmarked().unmarked().unmarked();
        assert_eq!((word.valid(), word.writers(), word.version()), (0xbeef, 0, 2));
        assert_eq!(SetWord(!0).marked().version(), 0, "it comes around, and nothing else moves");
    }

    #[test]
    fn too_many_writers_stay_until_a_reset() {
        let mut word = (0..300).fold(SetWord(1), |word, _| word.marked());
        assert_eq!((word.writers(), word.version()), (255, 300));
        word = (0..300).fold(word, |word, _| word.unmarked());
        assert_eq!(word.writers(), 255);
        assert_eq!((word.reset().writers(), word.reset().version(), word.reset().valid()), (0, 300, 1));
    }

    #[test]
    fn every_step_of_a_tag_is_another_one() {
        let idle = Tag(0).filled(7, 9);
        let claimed = idle.claimed(3);
        assert_eq!((claimed.is_filled(), claimed.filler()), (false, Some(3)));
        assert_eq!((claimed.given_up().is_filled(), claimed.given_up().filler()), (false, None));
        let filled = claimed.filled(7, 9);
        assert_eq!((filled.checksum(), filled.stamp(), filled.is_filled()), (7, 9, true));
        assert!(idle != claimed && claimed != filled && idle != filled);
    }

    #[test]
    fn only_a_file_that_is_verified_trusted_and_quiet_is_open() {
        let word = FileWord(FileWord::USED | FileWord::SERVED).reborn(5);
        assert!(word.is_open());
        for closed in [
            word.marked(6),
            word.reborn(0),
            word.flagged(FileWord::DISTRUSTED, true),
            word.flagged(FileWord::SUSPENDED, true),
            word.flagged(FileWord::PASSED, true),
            word.flagged(FileWord::SERVED, false),
            word.vacated(),
        ] {
            assert!(!closed.is_open(), "{closed:?}");
        }
        assert!(word.marked(6).unmarked().is_open());
        assert_eq!(FileWord(!0).vacated(), FileWord(0), "tenants come around alone");
        assert_eq!(word.vacated().tenant(), 1);
    }
}
