//! What every algorithm does, and what comes of it.

pub use seawall_cache::model::Outcome;

use seawall_cache::key::Block;
use seawall_cache::model::Sets;
use seawall_cache::set::Policy;

/// A way to choose which blocks are kept.
pub trait Algorithm: Send {
    /// Whether a block is there. Changes nothing.
    fn contains(&self, block: Block) -> bool;
    /// A read of a block.
    fn read(&mut self, block: Block) -> Outcome;
    /// A write to a block: it must not be there any more.
    fn kill(&mut self, block: Block);
}

/// Ours, as the shared index has it.
impl Algorithm for Sets {
    fn contains(&self, block: Block) -> bool {
        Sets::contains(self, block)
    }

    fn read(&mut self, block: Block) -> Outcome {
        self.read_under(Policy::Default, block)
    }

    fn kill(&mut self, block: Block) {
        Sets::kill(self, block);
    }
}
