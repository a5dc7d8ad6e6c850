//! The thread that connects: to keepers that are lost, to those whose connection is worn, and to one now and then that may
//! know of another writer.

use std::sync::Weak;

use seawall_keeper::meta::Roster;
use seawall_keeper::peer::PeerError;
use seawall_keeper::turn::{Promised, connect, promise};
use seawall_keeper::writer::Role;
use seawall_media::locks::lock;
use seawall_wire::keeper::Epoch;

use super::{AGAIN, Kept};

/// One keeper is asked every so many tries whether another writer has the log.
const LOOK_AROUND: usize = 8;

impl Kept {
    /// Connects to keepers that are not reached, again and again, until the log is used no more.
    pub(super) fn reach_missing(kept: &Weak<Self>) {
        let mut round = 0;
        while let Some(kept) = kept.upgrade() {
            let (missing, roster, head) = {
                let state = lock(&kept.state);
                // Of a turn that is over for this host nobody is to have a copy.
                let missing = if state.course.is_in_turn() { state.writer.missing() } else { Vec::new() };
                (missing, state.writer.roster().clone(), state.writer.head())
            };
            for keeper in missing {
                let reached = connect(kept.log, &roster.members[keeper], &kept.transport);
                let reached = reached.and_then(|(peer, _)| promise(peer, head.epoch, &roster));
                kept.has_come(keeper, reached);
            }
            kept.connect_beside(&roster);
            // A turn that begins anew looks itself, and finds what it was promised before.
            if lock(&kept.state).course.is_in_turn() {
                kept.look_for_another(&roster, head.epoch, round);
            }
            round += 1;
            drop(kept);
            std::thread::sleep(AGAIN);
        }
    }

    /// Connects to those keepers whose connection is to be made anew.
    fn connect_beside(&self, roster: &Roster) {
        let wanted = lock(&self.state).renewal.wanted();
        for keeper in wanted {
            // Without one it goes on, and the next round tries again.
            if let Ok((peer, _)) = connect(self.log, &roster.members[keeper], &self.transport) {
                lock(&self.state).renewal.has_come(keeper, peer);
            }
        }
    }

    /// A keeper was reached, or not: for whoever leads next, or waits now.
    fn has_come(&self, keeper: usize, reached: Result<Promised, PeerError>) {
        let mut state = lock(&self.state);
        // Nobody may have come for the one before.
        state.arrivals.retain(|(other, _)| *other != keeper);
        state.arrivals.push((keeper, reached));
        drop(state);
        self.arrived.notify_all();
    }

    /// Whether another writer has the log by now: asks one keeper now and then, each in its turn, so that a host that does
    /// not commit learns of it too; and all of them as soon as one said so.
    fn look_for_another(&self, roster: &Roster, epoch: Epoch, round: usize) {
        let (fenced, known) = {
            let state = lock(&self.state);
            let fenced = state.writer.known().any(|link| link.role == Role::Fenced);
            (fenced, state.taken_by.is_some())
        };
        let keepers = 0..roster.members.len();
        let asked: Vec<usize> = match (fenced, known) {
            (_, true) if lock(&self.state).over.is_some() => return,
            (true, _) | (_, true) => keepers.collect(),
            _ if round % LOOK_AROUND == LOOK_AROUND - 1 => vec![round / LOOK_AROUND % keepers.len()],
            _ => return,
        };
        for keeper in asked {
            let Ok((peer, found)) = connect(self.log, &roster.members[keeper], &self.transport) else {
                continue;
            };
            if found.promised <= epoch {
                continue;
            }
            lock(&self.state).is_taken_by(peer.holder().cloned(), found.promised);
            // It refuses, and says why.
            if let Err(error) = promise(peer, epoch, roster) {
                self.has_come(keeper, Err(error));
            }
        }
    }
}
