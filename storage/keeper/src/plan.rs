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

impl Head {
    /// Of a turn whose writer brings the log itself, up to this batch: nobody has a copy that it begins with.
    pub fn anew(epoch: Epoch, last: u64) -> Self {
        Self { epoch, base: Position { epoch, number: 0 }, begun: last, last }
    }
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
    // A witness lacks no batch that it was not asked about.
    let is_of_this_turn = at.epoch == head.epoch && (at.number >= head.last || state.is_witness());
    match state.is_kept() {
        true if is_of_this_turn => Plan::Counts,
        _ if state.is_witness() => Plan::Adopt,
        true if at == head.base && head.last == head.begun => Plan::Adopt,
        _ => Plan::Copy,
    }
}

#[cfg(test)]
mod tests {
    use seawall_wire::keeper::state;
    use zerocopy::FromZeros as _;

    use super::*;

    fn of(counter: u64, number: u64, flags: u32) -> State {
        let mut state = State::new_zeroed();
        state.position = Position { epoch: Epoch { counter, writer: 1 }, number };
        state.flags = flags;
        state
    }

    #[test]
    fn what_a_keeper_has_decides_what_it_gets() {
        let epoch = Epoch { counter: 5, writer: 1 };
        let base = Position { epoch: Epoch { counter: 4, writer: 1 }, number: 70 };
        let begun = Head { epoch, base, begun: 71, last: 71 };
        let written = Head { last: 75, ..begun };
        let kept = state::KEPT;
        for (head, state, expected) in [
            (begun, of(4, 70, kept), Plan::Adopt),
            (written, of(4, 70, kept), Plan::Copy),
            (begun, of(4, 69, kept), Plan::Copy),
            (begun, of(3, 70, kept), Plan::Copy),
            (begun, of(3, 71, kept), Plan::Copy),
            (written, of(5, 75, kept), Plan::Counts),
            (written, of(5, 76, kept), Plan::Counts),
            (written, of(5, 74, kept), Plan::Copy),
            (written, of(5, 75, 0), Plan::Copy),
            (begun, of(4, 70, 0), Plan::Copy),
            (written, of(4, 70, state::WITNESS), Plan::Adopt),
            (written, of(5, 75, kept | state::WITNESS), Plan::Counts),
        ] {
            assert_eq!(plan(head, &state), expected, "{head:?} {state:?}");
        }
    }
}
