//! What a writer does with a keeper that gave it its promise, so that the copy there counts.

use seawall_wire::keeper::{Epoch, Position, State};

/// Where a writer's log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its turn.
    pub epoch: Epoch,
    /// The copy that it began with: everything that was ever acknowledged before its turn.
    pub base: Position,
    /// The number that its log had when the turn began: nothing was written since then.
    pub begun: u64,
    /// The newest batch that counts.
    pub last: u64,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing: it has everything.
    Counts,
    /// It has what the writer began with, and nothing was written since: it adopts that.
    Adopt,
    /// It gets an image of its own, while batches go there as well.
    Copy,
}

/// What to do. No batch is under way meanwhile.
///
/// A copy of this turn may be ahead of the newest batch that counts: then it has one whose writer was replaced, and
/// with it all that counted before.
pub fn plan(head: Head, state: &State) -> Plan {
    let at = state.position;
    let is_of_this_turn = at.epoch == head.epoch && at.number >= head.last;
    match state.is_kept() {
        true if is_of_this_turn => Plan::Counts,
        _ if state.is_witness() => Plan::Adopt,
        true if at == head.base && head.last == head.begun => Plan::Adopt,
        _ => Plan::Copy,
    }
}
