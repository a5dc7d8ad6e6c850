//! What a trace is made of.

use crate::key::Block;

/// One block was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Read(Block),
    /// Written.
    Write(Block),
}
