//! What a keeper says of itself, and of each of its logs.

use serde::{Deserialize, Serialize};

use crate::holder::Holder;
use crate::log::Log;
use crate::meta::Roster;

/// What a keeper says of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Its UUID.
    pub id: String,
    /// Its host.
    pub host: String,
    /// It keeps numbers and no data.
    pub witness: bool,
    /// When its own disk has what it confirms: `memory`, `noaffirm`, `affirm`.
    pub harden: String,
    /// Bytes for images, and how many of them are in use.
    pub quota: u64,
    /// Bytes that are in use.
    pub used: u64,
    /// Each log.
    pub logs: Vec<LogReport>,
}

/// One log of a [`Report`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogReport {
    /// Its UUID.
    pub log: String,
    /// Whose it is, by the certificate that made it; empty: anybody's, in clear text.
    #[serde(default)]
    pub owner: String,
    /// Bytes of the image.
    pub image: u64,
    /// The writer that has the promise: its turn, and its number.
    pub promised: (u64, u64),
    /// The newest batch: its writer's turn, that one's number, and its own.
    pub position: (u64, u64, u64),
    /// It has everything that it ever confirmed.
    pub kept: bool,
    /// It is being brought up to date.
    pub joining: bool,
    /// Up to which batch the file is durable.
    pub hardened: u64,
    /// What its disk said, if that failed.
    pub trouble: Option<String>,
    /// Its keepers.
    pub roster: Roster,
    /// The host that has the promise.
    #[serde(default)]
    pub holder: Option<Holder>,
    /// How many seconds ago something came from the writer; `None`: it is not connected.
    #[serde(default)]
    pub heard: Option<u64>,
}

impl LogReport {
    /// The report on a log.
    pub(super) fn of(log: &Log) -> Self {
        let (copy, meta) = (log.copy(), log.meta());
        let (promised, at) = (copy.promised(), copy.position());
        Self {
            log: meta.log.clone(),
            owner: meta.owner.clone(),
            image: meta.image,
            promised: (promised.counter, promised.writer),
            position: (at.epoch.counter, at.epoch.writer, at.number),
            kept: copy.is_kept(),
            joining: copy.is_joining(),
            hardened: log.hardened(),
            trouble: log.trouble().map(str::to_owned),
            roster: meta.roster.clone(),
            holder: meta.holder.clone(),
            heard: log.heard().map(|since| since.as_secs()),
        }
    }
}
