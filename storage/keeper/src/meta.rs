//! What a keeper must not forget, whatever it loses: whom it promised what.
//!
//! One small file for each log, replaced as a whole, durable before the promise is answered.

use std::fs;
use std::io;
use std::path::Path;

use seawall_media::durable;
use seawall_wire::keeper::{Epoch, Position};
use serde::{Deserialize, Serialize};

use crate::holder::Holder;
use crate::quorum::Quorum;

/// Of one log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The log's UUID.
    pub log: String,
    /// Bytes of its image.
    pub image: u64,
    /// Who made it, by its certificate; empty: anybody, in clear text.
    pub owner: String,
    /// What was promised: counter and writer.
    pub promised: (u64, u64),
    /// The host that has that promise, as its writer said. `None`: it was given before hosts were named.
    #[serde(default)]
    pub holder: Option<Holder>,
    /// The log's keepers, as its writer said with that promise.
    pub roster: Roster,
    /// It confirmed only what its file had.
    pub affirmed: bool,
    /// Written by a clean end, and taken away before the next start answers anybody: up to there its own files have all
    /// that it ever confirmed.
    pub closed_at: Option<(u64, u64, u64)>,
}

/// What a host does when too few of its keepers are reached, in the words of Oracle's Data Guard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Commits wait, and then fail.
    #[default]
    Protection,
    /// Commits are made durable on its own disk, until enough are reached again.
    Availability,
}

impl Mode {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The keepers of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roster {
    /// How many of them confirm a batch before it is acknowledged.
    pub acks: usize,
    /// All of them.
    pub members: Vec<Member>,
    /// What a host does without enough of them.
    #[serde(default, skip_serializing_if = "Mode::is_default")]
    pub mode: Mode,
}

/// What a writer says with the promise that it asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The keepers of the log.
    #[serde(flatten)]
    pub roster: Roster,
    /// The writer's host.
    #[serde(default)]
    pub holder: Option<Holder>,
    /// The epoch of the newest copy that the writer found, counter and writer: a copy of a newer one refuses, since somebody
    /// else has taken the log over meanwhile. `None`: whatever is there.
    #[serde(default)]
    pub found: Option<(u64, u64)>,
}

/// One keeper of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Who it is: what its directory says.
    pub id: String,
    /// Where it is reached.
    pub address: String,
    /// It has no data.
    pub witness: bool,
}

impl Roster {
    /// How many are enough.
    pub fn quorum(&self) -> Quorum {
        Quorum { keepers: self.members.len(), acks: self.acks }
    }
}

impl Meta {
    /// The epoch that was promised.
    pub fn promised(&self) -> Epoch {
        Epoch { counter: self.promised.0, writer: self.promised.1 }
    }

    /// Where the copy was at a clean end.
    pub fn closed_at(&self) -> Option<Position> {
        self.closed_at.map(|(counter, writer, number)| Position { epoch: Epoch { counter, writer }, number })
    }

    /// Reads it. `None` if there is none.
    ///
    /// # Errors
    /// What cannot be read is damaged: without it nobody knows what was promised.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        serde_json::from_slice(&text).map(Some).map_err(io::Error::from)
    }

    /// Puts it in the place of what is there, durably.
    ///
    /// # Errors
    /// What is there then is what was there, or this.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        replace(path, &text)
    }
}

/// Puts a file in the place of another one, durably.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    durable::replace(path, &path.with_extension("new"), bytes, |_| Ok(()))
}
