//! Processes: who is alive, and what they hold.

use seawall_media::Region;

use crate::words::words;

/// View of a client slot: one process.
///
/// The owner word in locks and lanes is `(slot + 1) << 48 | thread pointer bits`, so that the death of an
/// owner can be seen from the outside.
#[derive(Clone, Copy)]
pub struct Client<'a> {
    region: &'a Region,
    at: usize,
}

words!(Client {
    /// Process id, 0 when the slot is free. Claimed by compare-and-swap.
    pid: u32 @ 0,
    /// Counts claims, so that a reused slot is not taken for its predecessor.
    generation: u32 @ 4,
    /// CLOCK_BOOTTIME in nanoseconds at the claim: a process that started later is another one.
    since: u64 @ 8,
    /// This process's writes around the log that are under way, of files that nobody has synced yet: of one period…
    around: u32 @ 16,
    /// … and of the next one, in turn.
    around_next: u32 @ 20,
    /// 1: a sync did not wait for the end of one of them. This process writes around the log no more.
    is_given_up: u32 @ 24,
    /// This process's changes of names in directories that it did not find in the log, under way.
    outside: u32 @ 28,
    /// This process's system calls on names that a guard may take, under way.
    at_guards: u32 @ 32,
});

impl<'a> Client<'a> {
    /// Bytes it occupies.
    pub const BYTES: usize = 64;

    pub(crate) fn new(region: &'a Region, at: usize) -> Self {
        Self { region, at }
    }
}

/// View of a hold: one process keeps one file out of the log (a writable mapping, a stream, io_uring).
#[derive(Clone, Copy)]
pub struct Hold<'a> {
    region: &'a Region,
    at: usize,
}

words!(Hold {
    /// Client slot plus one, 0 when the entry is free. Claimed by compare-and-swap.
    client: u32 @ 0,
    /// File slot.
    slot: u32 @ 4,
    /// Generation of the file slot.
    generation: u32 @ 8,
    /// How many holds this entry stands for.
    count: u32 @ 12,
});

impl<'a> Hold<'a> {
    /// Bytes it occupies.
    pub const BYTES: usize = 16;

    pub(crate) fn new(region: &'a Region, at: usize) -> Self {
        Self { region, at }
    }
}
