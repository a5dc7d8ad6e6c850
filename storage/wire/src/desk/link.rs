//! What all processes of a host know of its connection to a keeper.

use core::sync::atomic::Ordering::SeqCst;

use seawall_media::Region;

use crate::words::words;

/// View of what all processes of this host know of a keeper's connection.
#[derive(Clone, Copy)]
pub struct Link<'a> {
    region: &'a Region,
    at: usize,
}

words!(Link {
    /// [`link_flags`]. 0: there is none that counts.
    flags: u32 @ 0,
    /// [`Desk::given`](super::Desk::given) when the connection was made.
    made: u32 @ 4,
    /// The lead that is in the middle of a frame there, a [`LeadWord`](super::LeadWord); 0: none.
    sending: u64 @ 8,
    /// The newest batch that the keeper confirmed.
    confirmed: u64 @ 16,
    /// The newest of those that its disk has.
    hardened: u64 @ 24,
    /// The highest [`Desk::given`](super::Desk::given) of those who found the connection that they had of no use.
    broken: u32 @ 32,
    /// How many records of TLS other processes than the daemon made of what they sent on it, at most.
    records: u64 @ 40,
});

impl<'a> Link<'a> {
    pub(super) fn new(region: &'a Region, at: usize) -> Self {
        Self { region, at }
    }

    /// True if the keeper's word counts, and nobody found the connection of no use.
    pub fn is_usable(&self) -> bool {
        self.counts() && !self.is_broken()
    }

    /// True if the keeper gets batches, whether its word counts or it is being brought up to date, and nobody found the
    /// connection of no use.
    pub fn takes_batches(&self) -> bool {
        let flags = self.flags().load(SeqCst);
        flags & (link_flags::COUNTS | link_flags::JOINS) != 0 && !self.is_broken()
    }

    /// True if somebody found the connection of no use.
    pub fn is_broken(&self) -> bool {
        self.broken().load(SeqCst) >= self.made().load(SeqCst)
    }

    /// True if the keeper's word counts.
    pub fn counts(&self) -> bool {
        self.flags().load(SeqCst) & link_flags::COUNTS != 0
    }

    /// True if the keeper has data.
    pub fn has_data(&self) -> bool {
        self.flags().load(SeqCst) & link_flags::DATA != 0
    }
}

/// What a keeper's word is worth.
pub mod link_flags {
    /// It counts.
    pub const COUNTS: u32 = 1;
    /// It has data, not only numbers.
    pub const DATA: u32 = 2;
    /// It is being brought up to date: it gets batches, and only the daemon hears it.
    pub const JOINS: u32 = 4;
}
