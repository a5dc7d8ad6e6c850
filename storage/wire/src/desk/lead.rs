//! Who leads the journal: the seat, the word of the lock, and the word that a batch is committed with.

use seawall_media::Region;

use crate::words::words;

/// View of a seat: what one leader has to itself, and what others must know of it.
#[derive(Clone, Copy)]
pub struct Seat<'a> {
    region: &'a Region,
    at: usize,
}

words!(Seat {
    /// Process and thread that sit here, 0 for nobody.
    holder: u64 @ 0,
    /// The process-id namespace that these are of; 0: unknown.
    namespace: u64 @ 8,
    /// Where in the journal the holder writes, or may write whenever it goes on.
    position: u64 @ 16,
    /// How many bytes; 0: nowhere.
    size: u64 @ 24,
    /// Where the batch ends that was last committed from here.
    end: u64 @ 32,
    /// The client that it is, plus one; 0: none.
    client: u32 @ 40,
});

impl<'a> Seat<'a> {
    pub(super) fn new(region: &'a Region, at: usize) -> Self {
        Self { region, at }
    }
}

/// What the lock says: which lead, from which seat, and whether its leader can be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeadWord(pub u64);

impl LeadWord {
    const PINNED: u64 = 1 << 7;

    /// The lead of this term, which no other lead has, from this seat.
    pub const fn new(term: u64, seat: u32) -> Self {
        Self((term << 8) | (seat as u64 + 1))
    }

    /// The seat.
    pub const fn seat(self) -> u32 {
        ((self.0 & (Self::PINNED - 1)) as u32).saturating_sub(1)
    }

    /// True while nobody may take the leader's place, unless it is dead.
    pub const fn is_pinned(self) -> bool {
        self.0 & Self::PINNED != 0
    }

    /// The same lead of one that nobody may replace.
    pub const fn pinned(self) -> Self {
        Self(self.0 | Self::PINNED)
    }

    /// The same lead of one that can be replaced.
    pub const fn unpinned(self) -> Self {
        Self(self.0 & !Self::PINNED)
    }
}

/// The newest batch: its number, from which seat it was committed, and how many took a leader's place since then. That
/// count is what a leader that was replaced fails on when it goes on and would commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastWord(pub u64);

impl LastWord {
    const SEAT_BITS: u32 = 4;
    const FENCE_BITS: u32 = 12;

    /// Of the batch with this number, committed from this seat.
    pub const fn new(number: u64, seat: u32) -> Self {
        Self(number << (Self::SEAT_BITS + Self::FENCE_BITS) | seat as u64)
    }

    /// The batch's number: 48 bits.
    pub const fn number(self) -> u64 {
        self.0 >> (Self::SEAT_BITS + Self::FENCE_BITS)
    }

    /// The seat whose [`end`](Seat::end) is the batch's.
    pub const fn seat(self) -> u32 {
        self.0 as u32 & ((1 << Self::SEAT_BITS) - 1)
    }

    /// The same batch, but nobody who led before can follow it.
    pub const fn fenced(self) -> Self {
        let unit = 1 << Self::SEAT_BITS;
        let mask = ((1 << Self::FENCE_BITS) - 1) << Self::SEAT_BITS;
        Self(self.0 & !mask | (self.0 & mask).wrapping_add(unit) & mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_what_they_are_made_of() {
        let lead = LeadWord::new(7, 3);
        assert_eq!((lead.seat(), lead.is_pinned()), (3, false));
        assert_eq!(
            (lead.pinned().seat(), lead.pinned().is_pinned(), lead.pinned().unpinned()),
            (3, true, lead)
        );
        let mut last = LastWord::new(9, 5);
        for _ in 0..(1 << LastWord::FENCE_BITS) - 1 {
            last = last.fenced();
            assert_eq!((last.number(), last.seat()), (9, 5));
            assert_ne!(last, LastWord::new(9, 5));
        }
        assert_eq!(last.fenced(), LastWord::new(9, 5));
    }
}
