//! To begin a turn: reach the keepers, fence whoever wrote before, and find the newest copy.

mod reach;

use std::io;

use seawall_media::random_uuid;
use seawall_wire::keeper::{Epoch, State};
use thiserror::Error;

use crate::holder::Holder;
use crate::meta::Roster;
use crate::peer::{Peer, PeerError};
use crate::plan::Head;
use crate::quorum::{self, Quorum, Unknown};
use crate::transport::Transport;
use crate::uuid::low_half;
pub(crate) use reach::at_once;
pub use reach::{PATIENCE, Reached, connect, newest_now, reach};

/// Why no turn began.
#[derive(Debug, Error)]
pub enum TurnError {
    /// Too few keepers, or none with the newest copy.
    #[error("{why}{}", said(.keepers))]
    Unknown {
        /// Why.
        why: Unknown,
        /// What kept the others from answering.
        keepers: Vec<PeerError>,
    },
    /// Somebody else has the log.
    #[error(
        "another writer now has this log, on this or another host: {0}. The commits that it acknowledges are \
         not seen here"
    )]
    Fenced(PeerError),
    /// Another host has it, and nobody said that it is to be taken over.
    #[error(
        "{holder} has this log, in turn {turn}: the commits that it has acknowledged since then are not \
         here, and a start here would take the log away from it. Nothing was replayed. Leave the database \
         where it is; if that host is down, or gave the database up, and its data is here, use \
         `seawall takeover`"
    )]
    Elsewhere {
        /// That host.
        holder: Holder,
        /// Its turn.
        turn: u64,
    },
    /// The kernel gives no random numbers.
    #[error("cannot draw a number for this writer: {0}")]
    Random(#[from] io::Error),
}

fn said(keepers: &[PeerError]) -> String {
    keepers.iter().map(|error| format!("; {error}")).collect()
}

/// A keeper that gave its promise.
pub struct Promised {
    /// The connection.
    pub peer: Peer,
    /// What it had.
    pub state: State,
}

/// Who may be fenced by a new turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Only writers of this host: a start.
    Start,
    /// Those of any host: a takeover.
    TakeOver,
}

/// A turn that has begun.
pub struct Begun {
    /// Where the log is.
    pub head: Head,
    /// Keepers that have promised, in the roster's order; `None`: what kept it.
    pub keepers: Vec<Result<Promised, PeerError>>,
    /// Those of them with the newest copy.
    pub newest: Vec<usize>,
}

/// A new turn: nobody who wrote before writes any more when this returns.
///
/// Of two that begin one at the same time at most one serves. Each asks only copies that are of no newer turn than those it
/// found, until it has so many promises that the other one never finds enough any more.
///
/// # Errors
/// [`TurnError`]. The former writer may be fenced all the same, unless it is [`TurnError::Elsewhere`].
pub fn begin(
    log: [u8; 16],
    roster: &Roster,
    transport: &Transport,
    claim: Claim,
) -> Result<Begun, TurnError> {
    let reached = reach(log, roster, transport);
    if claim == Claim::Start
        && let Some(elsewhere) = elsewhere(&reached)
    {
        return Err(elsewhere);
    }
    let (epoch, keepers) = fence(log, roster, transport, reached)?;
    let answers: Vec<Option<State>> =
        keepers.iter().map(|keeper| keeper.as_ref().ok().map(|keeper| keeper.state)).collect();
    match choose(roster.quorum(), epoch, &answers) {
        Ok((head, newest)) => Ok(Begun { head, keepers, newest }),
        Err(why) => Err(not_begun(why, keepers)),
    }
}

/// A new turn of a writer that has everything itself, whatever its keepers have: one that went on without them. There is
/// no newest copy in it; where its log is, the writer says. Nobody is asked for a promise unless enough answer.
///
/// # Errors
/// [`TurnError`].
pub fn begin_anew(log: [u8; 16], roster: &Roster, transport: &Transport) -> Result<Begun, TurnError> {
    let reached = reach(log, roster, transport);
    if let Some(elsewhere) = elsewhere(&reached) {
        return Err(elsewhere);
    }
    let needed = roster.quorum().begins();
    let too_few = |answered| Unknown::TooFew { answered, keepers: roster.members.len(), needed };
    let answered = reached.iter().flatten().count();
    if answered < needed {
        let keepers = reached.into_iter().filter_map(Result::err).collect();
        return Err(TurnError::Unknown { why: too_few(answered), keepers });
    }
    let (epoch, keepers) = fence(log, roster, transport, reached)?;
    // A promise is kept whatever else a keeper loses.
    let promised = keepers.iter().flatten().count();
    if promised < needed {
        return Err(not_begun(too_few(promised), keepers));
    }
    Ok(Begun { head: Head::anew(epoch, 0), keepers, newest: Vec::new() })
}

/// What each keeper answered that was asked for its promise, in the roster's order.
type Promises = Vec<Result<Promised, PeerError>>;

/// Asks everybody who is reached for a promise of a new epoch.
fn fence(
    log: [u8; 16],
    roster: &Roster,
    transport: &Transport,
    reached: Vec<Reached>,
) -> Result<(Epoch, Promises), TurnError> {
    let states = || reached.iter().flatten().map(|(_, state)| *state);
    let epoch = next_epoch(states(), draw_writer()?);
    let found = states().map(|state| state.position.epoch).max();
    let mut keepers: Promises = reached
        .into_iter()
        .map(|reached| {
            let (mut peer, _) = reached?;
            let (state, _) = peer.promise_if(epoch, Some(roster), found)?;
            Ok(Promised { peer, state })
        })
        .collect();
    let kept = keepers.iter().flatten().filter(|promised| promised.state.is_kept()).count();
    if kept >= roster.quorum().takes() {
        // Whoever took these was not enough, and never will be.
        for (keeper, member) in keepers.iter_mut().zip(&roster.members) {
            if keeper.as_ref().is_err_and(PeerError::is_taken) {
                *keeper = connect(log, member, transport).and_then(|(peer, _)| promise(peer, epoch, roster));
            }
        }
    }
    Ok((epoch, keepers))
}

fn not_begun(why: Unknown, keepers: Promises) -> TurnError {
    let mut errors: Vec<PeerError> = keepers.into_iter().filter_map(Result::err).collect();
    match errors.iter().position(|error| error.is_fenced() || error.is_taken()) {
        Some(at) => TurnError::Fenced(errors.swap_remove(at)),
        None => TurnError::Unknown { why, keepers: errors },
    }
}

/// The host that has the log, if it is another one than this.
fn elsewhere(reached: &[Reached]) -> Option<TurnError> {
    let newest = reached.iter().flatten().max_by_key(|(_, state)| state.promised)?;
    let holder = newest.0.holder().filter(|holder| !holder.is(&Holder::here()))?;
    Some(TurnError::Elsewhere { holder: holder.clone(), turn: newest.1.promised.counter })
}

/// A number for a writer, which no other one has.
///
/// # Errors
/// If the kernel gives no random numbers.
pub fn draw_writer() -> io::Result<u64> {
    Ok(low_half(random_uuid()?).max(1))
}

/// The epoch that this writer asks for, when it found keepers in these states.
pub fn next_epoch(found: impl Iterator<Item = State>, writer: u64) -> Epoch {
    Epoch { counter: found.map(|state| state.promised.counter).max().unwrap_or(0) + 1, writer }
}

/// Where the log of a new turn is, and who has the copy that it begins with, of what keepers answered that gave their
/// promise.
///
/// # Errors
/// [`Unknown`].
pub fn choose(
    quorum: Quorum,
    epoch: Epoch,
    answers: &[Option<State>],
) -> Result<(Head, Vec<usize>), Unknown> {
    let (base, newest) = quorum::newest(quorum, answers)?;
    let begun = base.number + 1;
    Ok((Head { epoch, base, begun, last: begun }, newest))
}

/// Asks a keeper for its promise.
///
/// # Errors
/// [`PeerError`].
pub fn promise(mut peer: Peer, epoch: Epoch, roster: &Roster) -> Result<Promised, PeerError> {
    let (state, _) = peer.promise(epoch, Some(roster))?;
    Ok(Promised { peer, state })
}

#[cfg(test)]
mod tests {
    use seawall_wire::keeper::{Position, state};
    use zerocopy::FromZeros as _;

    use super::*;

    #[test]
    fn a_turn_is_newer_than_what_was_found_and_its_log_has_a_number_of_its_own() {
        let mut found = State::new_zeroed();
        let former = Epoch { counter: 4, writer: 9 };
        (found.promised, found.position) = (former, Position { epoch: former, number: 70 });
        found.flags = state::KEPT;
        let epoch = next_epoch([State::new_zeroed(), found].into_iter(), 1);
        assert!(epoch > former && epoch.counter == 5, "{epoch:?}");
        let chosen = choose(Quorum { keepers: 1, acks: 1 }, epoch, &[Some(found)]);
        let head = Head { epoch, base: found.position, begun: 71, last: 71 };
        assert_eq!(chosen, Ok((head, vec![0])));
    }
}
