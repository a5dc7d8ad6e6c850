//! Changes of a file's metadata, renames or attributes: made in order, durable in order.
//!
//! Input: what a client does, and which syncs succeeded. Output: whether a sync that was acknowledged covered what had
//! been done when it began. Not simulated: what a replay makes of a name that was lost. It finds files by identity.

/// Counts of one kind of change to one file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Metadata {
    made: u64,
    returned: u64,
    durable: u64,
}

impl Metadata {
    /// The kernel makes a change. Returns which one it was.
    pub fn make(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// That change's call has returned.
    pub fn return_from(&mut self, which: u64) {
        self.returned = self.returned.max(which);
    }

    /// Everything so far is on disk.
    pub fn is_synced(&mut self) {
        self.durable = self.made;
    }

    /// What a sync that begins now has to cover.
    pub fn due(&self) -> u64 {
        self.returned
    }

    /// True if a power cut can no longer undo what was due.
    pub fn covers(&self, due: u64) -> bool {
        self.durable >= due
    }
}
