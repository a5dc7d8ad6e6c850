//! Whose turn it is to change which files are managed, and whether anybody may join at all.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use seawall_media::locks::{Turn, Turns};

/// Registration, forgetting and closing exclude each other.
#[derive(Default)]
pub(crate) struct Registering {
    turns: Turns,
    /// What belongs to this boot is given up: nobody joins any more.
    given_up: AtomicBool,
}

impl Registering {
    /// Until this is dropped nobody else registers, forgets or closes.
    pub fn turn(&self) -> Turn<'_> {
        self.turns.take()
    }

    /// The same, if it can be had within this time.
    pub fn turn_within(&self, limit: Duration) -> Option<Turn<'_>> {
        self.turns.take_within(limit)
    }

    /// Waits for the registration that is under way, if one is.
    pub fn wait(&self) {
        drop(self.turn());
    }

    /// From now on nobody joins. The caller has the [turn](Self::turn).
    pub fn give_up(&self) {
        self.given_up.store(true, SeqCst);
    }

    /// Takes [`Self::give_up`] back.
    pub fn go_on(&self) {
        self.given_up.store(false, SeqCst);
    }

    /// True if nobody joins any more.
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(SeqCst)
    }
}
