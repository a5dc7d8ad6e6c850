//! Room in the ring: how much is used, who may use the rest, and where the next batch goes.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use seawall_media::block::Ring;
use seawall_wire::desk::Desk;

use super::seat;

/// The purpose of a batch. Tables can still change when records have no room, also while cleaning is under way or was
/// given up by a daemon that died. And there is always room to make room, if only once nothing is live: the live part
/// is never more than the image, a third of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Records: half of the journal.
    Records,
    /// Tables: an eighth more.
    Tables,
    /// Cleaning: all of it; the last part is reserved for cleaning alone.
    #[cfg(feature = "std")]
    Cleaning,
}

impl Room {
    /// The share of this many bytes that it may use, not counting what cleaning wrote.
    const fn share(self, bytes: u64) -> u64 {
        match self {
            Self::Records => bytes / 2,
            Self::Tables => bytes / 8 * 5,
            #[cfg(feature = "std")]
            Self::Cleaning => bytes,
        }
    }

    /// The bytes that it leaves free for more important purposes, with everything counted.
    pub(super) const fn spare(self, bytes: u64) -> u64 {
        match self {
            Self::Records => bytes / 8,
            Self::Tables => bytes / 16,
            #[cfg(feature = "std")]
            Self::Cleaning => 0,
        }
    }

    /// True if this many more bytes fit.
    pub(super) fn takes(self, desk: Desk<'_>, size: u64) -> bool {
        let (bytes, used) = (ring(desk).bytes(), used(desk));
        // This can fall below zero: a daemon died after it moved the tail and before it reset the count of cleaned
        // bytes.
        let counted = match self {
            #[cfg(feature = "std")]
            Self::Cleaning => used,
            _ => used.saturating_sub(desk.cleaned().load(Relaxed)),
        };
        counted + size <= self.share(bytes) && used + size + self.spare(bytes) <= bytes
    }
}

pub(super) fn ring(desk: Desk<'_>) -> Ring {
    Ring { size: desk.size().load(Relaxed) }
}

pub(super) fn used(desk: Desk<'_>) -> u64 {
    ring(desk).used(desk.tail().load(SeqCst), desk.newest().1)
}

/// Where a batch of this many bytes goes behind this end, clear of everything that others may still write.
pub(super) fn place(desk: Desk<'_>, seat: u32, end: u64, size: u64, room: Room) -> Option<u64> {
    let (mut avoided, mut count) = ([(0, 0); Desk::SEATS as usize], 0);
    for stretch in seat::claimed_by_others(desk, seat) {
        avoided[count] = stretch;
        count += 1;
    }
    let place = ring(desk).place(desk.tail().load(SeqCst), end, size, &avoided[..count]);
    place.filter(|_| room.takes(desk, size))
}
