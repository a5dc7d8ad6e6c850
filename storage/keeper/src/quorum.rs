//! How many keepers are enough, and for what.
//!
//! Of *n* keepers *w* have to confirm a batch before it is acknowledged. Any *n − w + 1* of them have one among them that
//! confirmed it: so many promises fence a writer, since it never finds *w* again, and know of everything that it
//! acknowledged. That holds for keepers that have kept all that they ever confirmed, and for no others.

use seawall_wire::keeper::{Position, State};
use thiserror::Error;

/// How many there are, and how many of them have to confirm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorum {
    /// Keepers of the log, witnesses among them.
    pub keepers: usize,
    /// How many confirm a batch before it is acknowledged.
    pub acks: usize,
}

impl Quorum {
    /// How many promises fence a writer, and know of everything that it acknowledged.
    pub fn takes(self) -> usize {
        (self.keepers + 1).saturating_sub(self.acks)
    }

    /// How many promises a writer needs that brings the log itself, whatever copies have: with so many nobody else has, or
    /// finds, enough to confirm anything.
    pub fn begins(self) -> usize {
        self.takes().max(self.acks)
    }

    /// How many keepers, whichever, may be lost with the writer's host, with nothing lost that is acknowledged while `missing`
    /// of them do not count, and `with_data` of those that do have data.
    pub fn survives(self, missing: usize, with_data: usize) -> usize {
        // The others have to be enough to tell where the log is; and one of them has it: witnesses confirm only what
        // everybody has that has data.
        let tell = self.acks.saturating_sub(missing);
        let have = self.acks.min(with_data);
        tell.min(have).saturating_sub(1)
    }
}

/// Why it is not known which copy is the newest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unknown {
    /// A commit may be acknowledged of which none of these knows.
    #[error(
        "{answered} of {keepers} keepers answered with everything that they ever confirmed, and {needed} are \
         needed: records that only the other keepers know might be missing"
    )]
    TooFew {
        /// Keepers that answered, and have kept everything.
        answered: usize,
        /// All.
        keepers: usize,
        /// How many it takes.
        needed: usize,
    },
    /// A witness knows of a newer one than any copy that was found.
    #[error(
        "a witness knows of batch {}, and the newest copy that answered ends at {}: the keeper that has the \
         batch must come back",
        .newest.number, .found.number
    )]
    OnlyAWitness {
        /// The newest position.
        newest: Position,
        /// The newest that a copy has.
        found: Position,
    },
}

/// The newest position of the log, and who has it, of what keepers answered that gave their promise: `None` for those that
/// did not.
///
/// # Errors
/// [`Unknown`].
pub fn newest(quorum: Quorum, answers: &[Option<State>]) -> Result<(Position, Vec<usize>), Unknown> {
    let kept =
        || answers.iter().enumerate().filter_map(|(i, state)| Some((i, state.filter(State::is_kept)?)));
    let (answered, needed, keepers) = (kept().count(), quorum.takes(), quorum.keepers);
    if answered < needed || answered == 0 {
        return Err(Unknown::TooFew { answered, keepers, needed });
    }
    let copies = || kept().filter(|(_, state)| !state.is_witness());
    let newest = kept().map(|(_, state)| state.position).max().unwrap_or_default();
    let found = copies().map(|(_, state)| state.position).max().unwrap_or_default();
    let holders: Vec<usize> = copies().filter(|(_, s)| s.position == newest).map(|(i, _)| i).collect();
    if holders.is_empty() { Err(Unknown::OnlyAWitness { newest, found }) } else { Ok((newest, holders)) }
}

#[cfg(test)]
mod tests {
    use seawall_wire::keeper::{Epoch, acknowledged, state};
    use zerocopy::FromZeros as _;

    use super::*;

    fn at(counter: u64, number: u64, flags: u32) -> Option<State> {
        let mut state = State::new_zeroed();
        state.position = Position { epoch: Epoch { counter, writer: 1 }, number };
        state.flags = flags;
        Some(state)
    }

    /// With two witnesses of three their two words would be enough, and the data nowhere but here.
    #[test]
    fn what_witnesses_alone_have_is_not_acknowledged() {
        let (keeper, witness) = (true, false);
        let far = |keepers: [(u64, bool); 3]| acknowledged(2, keepers.into_iter());
        assert_eq!(far([(7, keeper), (9, witness), (9, witness)]), 7);
        assert_eq!(far([(9, keeper), (9, witness), (7, witness)]), 9);
    }

    #[test]
    fn a_witness_is_a_vote_and_no_copy() {
        let three = Quorum { keepers: 3, acks: 2 };
        assert_eq!([three.survives(0, 3), three.survives(0, 2), three.survives(0, 1)], [1, 1, 0]);
        assert_eq!([three.survives(1, 2), three.survives(1, 1), three.survives(2, 0)], [0, 0, 0]);
        assert_eq!(Quorum { keepers: 3, acks: 3 }.survives(0, 2), 1, "two have it");
        assert_eq!(Quorum { keepers: 5, acks: 3 }.survives(1, 3), 1);
    }

    #[test]
    fn a_quorum_to_fence_meets_each_one_that_confirms() {
        for keepers in 1..=8 {
            for acks in 1..=keepers {
                let quorum = Quorum { keepers, acks };
                assert!(quorum.takes() + acks > keepers && quorum.takes() + acks - 1 <= keepers);
                // Whoever brings the log itself meets those who take it over, and is enough to confirm.
                assert!(quorum.begins() >= acks && quorum.begins() >= quorum.takes());
            }
        }
    }

    #[test]
    fn the_newest_is_by_the_epoch_of_its_batch_and_then_by_its_number() {
        let quorum = Quorum { keepers: 3, acks: 2 };
        let kept = state::KEPT;
        let found = newest(quorum, &[at(1, 90, kept), at(2, 7, kept), None]);
        assert_eq!(found.map(|(at, who)| (at.number, who)), Ok((7, vec![1])));
        let lost = newest(quorum, &[at(1, 90, kept), at(2, 7, 0), None]);
        assert_eq!(lost, Err(Unknown::TooFew { answered: 1, keepers: 3, needed: 2 }));
        let witness = newest(quorum, &[at(1, 90, kept), at(2, 7, kept | state::WITNESS), None]);
        assert!(matches!(witness, Err(Unknown::OnlyAWitness { .. })), "{witness:?}");
    }
}
