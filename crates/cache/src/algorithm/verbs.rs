//! What every algorithm does, and what comes of it.

use crate::key::Block;

/// What became of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The block was there.
    Hit,
    /// It was not, and now it is.
    Admitted,
    /// It was not, and still is not.
    Passed,
}

/// A way to choose which blocks are kept.
pub trait Algorithm: Send {
    /// Whether a block is there. Changes nothing.
    fn contains(&self, block: Block) -> bool;
    /// A read of a block.
    fn read(&mut self, block: Block) -> Outcome;
    /// A write to a block: it must not be there any more.
    fn kill(&mut self, block: Block);
}
