//! How much a sync covers.

/// What a sync has to make durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// fdatasync(2), O_DSYNC: content and size.
    Data,
    /// fsync(2), O_SYNC: names and attributes too.
    Whole,
}
