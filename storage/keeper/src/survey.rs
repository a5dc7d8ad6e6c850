//! What the keepers of a log say of it, for whoever decides about a takeover. Changes nothing anywhere.

use seawall_wire::keeper::{Epoch, Position, State, state};
use zerocopy::FromZeros as _;

use crate::holder::Holder;
use crate::keeper::{LogReport, Report};
use crate::meta::Roster;
use crate::peer::{Peer, PeerError};
use crate::quorum::{self, Unknown};
use crate::transport::Transport;
use crate::turn::{PATIENCE, at_once};

/// What the keepers of a log answered.
pub struct Survey {
    /// Its keepers.
    pub roster: Roster,
    /// What each keeper says, in the roster's order.
    pub keepers: Vec<Result<LogReport, PeerError>>,
}

/// Asks keepers what they keep, all at the same time.
pub fn ask(addresses: &[String], transport: &Transport) -> Vec<Result<Report, PeerError>> {
    at_once(addresses, |address| Peer::connect(address, transport, PATIENCE)?.report())
}

impl Survey {
    /// Asks the keepers of the log with this UUID.
    pub fn of(log: &str, roster: &Roster, transport: &Transport) -> Self {
        let addresses: Vec<String> = roster.members.iter().map(|member| member.address.clone()).collect();
        let about = |(report, member): (Result<Report, PeerError>, &crate::meta::Member)| {
            let report = report?;
            let refused =
                |why: String| PeerError::Refused { address: member.address.clone(), refusal: None, why };
            if report.id != member.id {
                return Err(refused(format!("this is keeper {}, and {} was expected", report.id, member.id)));
            }
            let log = report.logs.into_iter().find(|report| report.log == log);
            log.ok_or_else(|| refused("it does not keep this log".into()))
        };
        let keepers = ask(&addresses, transport).into_iter().zip(&roster.members).map(about).collect();
        Self { roster: roster.clone(), keepers }
    }

    /// The newest position, and the keepers that have it.
    ///
    /// # Errors
    /// [`Unknown`].
    pub fn newest(&self) -> Result<(Position, Vec<usize>), Unknown> {
        let states = self.keepers.iter().zip(&self.roster.members);
        let of = |(report, member): (&Result<LogReport, PeerError>, &crate::meta::Member)| {
            let report = report.as_ref().ok()?;
            let mut said = State::new_zeroed();
            said.position = position(report);
            said.flags = u32::from(report.kept) * state::KEPT + u32::from(member.witness) * state::WITNESS;
            Some(said)
        };
        quorum::newest(self.roster.quorum(), &states.map(of).collect::<Vec<_>>())
    }

    /// The turn of the newest promise, and the host that has it, as far as the keepers that answered know.
    pub fn holder(&self) -> Option<(Epoch, Option<&Holder>)> {
        let promised = |report: &LogReport| Epoch { counter: report.promised.0, writer: report.promised.1 };
        let newest = self.keepers.iter().flatten().max_by_key(|report| promised(report))?;
        Some((promised(newest), newest.holder.as_ref()))
    }

    /// How many seconds ago a keeper heard the writer of the newest promise, of those to which it is connected.
    pub fn heard(&self) -> Option<u64> {
        let (newest, _) = self.holder()?;
        let is_its = |report: &&LogReport| report.promised == (newest.counter, newest.writer);
        self.keepers.iter().flatten().filter(is_its).filter_map(|report| report.heard).min()
    }
}

/// Where a copy is.
pub fn position(report: &LogReport) -> Position {
    let (counter, writer, number) = report.position;
    Position { epoch: Epoch { counter, writer }, number }
}
