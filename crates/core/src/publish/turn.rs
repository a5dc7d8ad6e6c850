//! What the engine asks of a front when a write's turn to be published comes. Any closure that performs the call will do.

use crate::Errno;

/// A change on its way to the page cache.
pub trait Publish<R> {
    /// The file's lock is held and nothing is logged yet; called anew if the log was full. What takes a locked
    /// instruction is done best here: one behind the record's stores waits until the medium has them, where else that
    /// wait is shared with the publish's own.
    fn prepare(&self) {}

    /// Makes the change visible. The file's lock is held, and the record is persisted, or the file is out of the log;
    /// without the lock only in a signal handler that interrupted its holder. `now` is a reading of
    /// [`ticks`](seawall_stats::ticks) that was made a moment ago.
    ///
    /// # Errors
    /// What the kernel said.
    fn publish(self, now: u64) -> Result<R, Errno>;
}

impl<R, F: FnOnce() -> Result<R, Errno>> Publish<R> for F {
    #[inline]
    fn publish(self, _now: u64) -> Result<R, Errno> {
        self()
    }
}
