//! What a long job tells whoever waits for it.

/// Receives progress. A library user may show it as it likes; `()` says nothing.
pub trait Progress: Sync {
    /// A job of `steps` steps begins.
    fn begin(&self, what: &str, steps: u64);
    /// Some more steps are done.
    fn advance(&self, steps: u64);
    /// A line that stays.
    fn note(&self, text: &str);
}

impl Progress for () {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn note(&self, _: &str) {}
}
