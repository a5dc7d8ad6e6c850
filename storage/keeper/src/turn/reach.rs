//! To reach a log's keepers: all of them at the same time, and nobody is waited for longer than it helps.

use std::io;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use seawall_wire::keeper::State;

use crate::meta::{Member, Roster};
use crate::peer::{Peer, PeerError};
use crate::quorum;
use crate::transport::Transport;
use crate::uuid::parse_uuid;

/// How long a keeper is waited for that does not answer.
pub const PATIENCE: Duration = Duration::from_secs(3);
/// How long one is waited for once enough others have answered.
const GRACE: Duration = Duration::from_millis(300);

/// The connection to a keeper, and what it has; or what kept it.
pub type Reached = Result<(Peer, State), PeerError>;

/// Connects to a keeper of a log.
///
/// # Errors
/// [`PeerError`]; somebody else may be there.
pub fn connect(log: [u8; 16], member: &Member, transport: &Transport) -> Reached {
    let mut peer = Peer::connect(&member.address, transport, PATIENCE)?;
    let (state, _) = peer.greet(log, None, parse_uuid(&member.id))?;
    Ok((peer, state))
}

/// Connects to every keeper of a log, at the same time. In the roster's order. Once enough have answered for a turn, and tell
/// where the log is, the others are waited for no longer than [`GRACE`]: a host that has no power says nothing for seconds.
pub fn reach(log: [u8; 16], roster: &Roster, transport: &Transport) -> Vec<Reached> {
    let (say, hear) = channel();
    for (keeper, member) in roster.members.iter().cloned().enumerate() {
        let (say, transport) = (say.clone(), transport.clone());
        thread::spawn(move || {
            // Nobody may listen any more when it is reached: then it is hung up.
            let _ = say.send((keeper, connect(log, &member, &transport)));
        });
    }
    drop(say);
    let silent = |member: &Member| {
        let error = io::Error::new(io::ErrorKind::TimedOut, "it did not answer as soon as enough others did");
        Err(PeerError::Lost { address: member.address.clone(), error })
    };
    let mut all: Vec<Reached> = roster.members.iter().map(silent).collect();
    let mut end: Option<Instant> = None;
    loop {
        let next = match end {
            Some(end) => hear.recv_timeout(end.saturating_duration_since(Instant::now())).ok(),
            None => hear.recv().ok(),
        };
        // All have answered, or those that have are enough.
        let Some((keeper, reached)) = next else { return all };
        all[keeper] = reached;
        if end.is_none() && is_enough(roster, &all) {
            end = Some(Instant::now() + GRACE);
        }
    }
}

/// True if these can begin any turn, and say where the log is.
fn is_enough(roster: &Roster, reached: &[Reached]) -> bool {
    let answers: Vec<Option<State>> =
        reached.iter().map(|reached| reached.as_ref().ok().map(|(_, state)| *state)).collect();
    let kept = answers.iter().flatten().filter(|state| state.is_kept()).count();
    kept >= roster.quorum().begins() && quorum::newest(roster.quorum(), &answers).is_ok()
}

/// Does the same to each, at the same time. What came of it, in their order.
pub(crate) fn at_once<T: Sync, R: Send>(each: &[T], act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let act = &act;
    thread::scope(|scope| {
        let threads: Vec<_> = each.iter().map(|one| scope.spawn(move || act(one))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, R>| {
            thread.join().unwrap_or_else(|_| unreachable!("a panic ends the process"))
        };
        threads.into_iter().map(join).collect()
    })
}

/// The keeper with the newest copy among those that are reached now, for whoever only looks.
///
/// # Errors
/// What keeps one of them from answering, if none does.
pub fn newest_now(log: [u8; 16], roster: &Roster, transport: &Transport) -> Result<Peer, PeerError> {
    let mut trouble = None;
    let reached = reach(log, roster, transport).into_iter().filter_map(|reached| match reached {
        Ok((peer, state)) => (!state.is_witness()).then_some((state.position, peer)),
        Err(error) => {
            trouble = Some(error);
            None
        }
    });
    let found = reached.max_by_key(|(position, _)| *position).map(|(_, peer)| peer);
    found.ok_or_else(|| trouble.unwrap_or(PeerError::Nonsense { address: "its keepers".into() }))
}
