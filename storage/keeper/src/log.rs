//! One log on a keeper: its copy, what must not be forgotten of it, and its file.

mod disk;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use seawall_wire::keeper::{Epoch, Frame, Kind, Refusal, State, state};
use thiserror::Error;

use crate::answer::{Answer, answer};
use crate::copy::{Copy, Turn};
use crate::holder::Holder;
use crate::meta::{Meta, Terms};
use crate::spool::{Frames, Spool};

/// When a keeper's own disk has what it confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harden {
    /// Never: a copy lives as long as the keeper runs.
    Memory,
    /// Some time later.
    NoAffirm,
    /// Before it confirms.
    Affirm,
}

impl Harden {
    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::NoAffirm => "noaffirm",
            Self::Affirm => "affirm",
        }
    }
}

/// Why something was not done, in words.
#[derive(Debug, Error)]
#[error("{why}")]
pub struct Refused {
    /// For the program that asked.
    pub refusal: Refusal,
    /// For whoever reads it.
    pub why: String,
}

impl Refused {
    pub(crate) fn new(refusal: Refusal, why: impl Into<String>) -> Self {
        Self { refusal, why: why.into() }
    }

    fn disk(path: &Path, error: &io::Error) -> Self {
        Self::new(Refusal::Disk, format!("{}: {error}", path.display()))
    }
}

/// A keeper's UUID and host, for [`State`].
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    pub id: [u8; 16],
    pub host: [u8; 64],
}

/// One log.
pub struct Log {
    directory: PathBuf,
    meta: Meta,
    copy: Copy,
    harden: Harden,
    spool: Option<Spool>,
    /// Frames that the copy took and the file has not, in the order in which it took them.
    unspooled: Frames,
    /// Its disk failed: what it said.
    trouble: Option<String>,
    /// The turn of a writer that is connected, and when something of it came last.
    heard: Option<(Turn, Instant)>,
    /// Up to which batch of the copy's epoch its file is durable.
    hardened: u64,
}

impl Log {
    /// Makes a log that is not here yet. `low` is its UUID's low half.
    ///
    /// # Errors
    /// The disk's.
    pub fn create(directory: &Path, meta: Meta, low: u64, harden: Harden, witness: bool) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let copy = Copy::new(low, meta.image, witness);
        let keeps = harden != Harden::Memory && !witness;
        let spool = keeps.then(|| Spool::create(&copy_of(directory), meta.image)).transpose()?;
        meta.write(&meta_of(directory))?;
        let (directory, unspooled) = (directory.into(), Frames::default());
        Ok(Self { directory, meta, copy, harden, spool, unspooled, trouble: None, heard: None, hardened: 0 })
    }

    /// Opens what a former run left. What it may have confirmed and does not have any more makes it one that has not kept
    /// everything.
    ///
    /// # Errors
    /// The disk's.
    pub fn open(
        directory: &Path,
        mut meta: Meta,
        low: u64,
        harden: Harden,
        witness: bool,
    ) -> io::Result<Self> {
        let promised = meta.promised();
        let empty = Copy::new(low, meta.image, witness);
        let path = copy_of(directory);
        let keeps = harden != Harden::Memory && !witness;
        let found = path.exists().then(|| Spool::open(&path, empty)).transpose()?;
        let (copy, spool, trouble) = match found {
            Some((spool, found)) => (found.copy, Some(spool), found.trouble),
            None => (Copy::new(low, meta.image, witness), None, None),
        };
        let is_whole = trouble.is_none() && (meta.affirmed || meta.closed_at() == Some(copy.position()));
        // A log that nobody promised anything was never confirmed anything.
        let is_kept = is_whole || promised == Epoch::default();
        let hardened = copy.position().number;
        let copy = if is_kept { copy.kept(promised) } else { copy.lost(promised) };
        // From now on an end that is not clean counts.
        (meta.closed_at, meta.affirmed) = (None, harden == Harden::Affirm);
        meta.write(&meta_of(directory))?;
        let spool = match spool {
            _ if !keeps => None,
            // What it has not kept is not gone on with.
            Some(spool) if is_kept => Some(spool),
            _ => Some(Spool::create(&path, meta.image)?),
        };
        let (directory, unspooled) = (directory.into(), Frames::default());
        Ok(Self { directory, meta, copy, harden, spool, unspooled, trouble, heard: None, hardened })
    }

    /// What is known of it durably.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The copy.
    pub fn copy(&self) -> &Copy {
        &self.copy
    }

    /// What its disk said, if that failed.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Up to which batch of the copy's epoch its file is durable.
    pub fn hardened(&self) -> u64 {
        self.hardened
    }

    /// The state, as a writer sees it.
    pub(crate) fn state(&self, who: Identity) -> State {
        let mut said = self.copy.state();
        (said.keeper, said.host, said.version) = (who.id, who.host, seawall_wire::keeper::KEEPER_VERSION);
        said.hardened = self.hardened;
        if self.harden == Harden::Affirm {
            said.flags |= state::AFFIRM;
        }
        said
    }

    /// Promises an epoch that nobody older changes the copy; durable when this returns.
    ///
    /// # Errors
    /// [`Refused`]: a newer writer has the promise; or the disk.
    pub fn promise(&mut self, epoch: Epoch, terms: Option<Terms>) -> Result<Turn, Refused> {
        let newer = self.copy.promised();
        self.copy.may_promise(epoch).map_err(|refusal| Refused::new(refusal, self.who_has_it()))?;
        self.is_as_found(epoch, terms.as_ref())?;
        let mut meta = self.meta.clone();
        meta.promised = (epoch.counter, epoch.writer);
        if newer != epoch {
            meta.holder = terms.as_ref().and_then(|terms| terms.holder.clone()).map(Holder::since_now);
        }
        meta.roster = terms.map_or(meta.roster, |terms| terms.roster);
        if meta != self.meta {
            meta.write(&meta_of(&self.directory)).map_err(|e| Refused::disk(&self.directory, &e))?;
            self.meta = meta;
        }
        let turn = self.copy.promise(epoch);
        self.heard = Some((turn, Instant::now()));
        Ok(turn)
    }

    /// The connection of this turn has ended.
    pub fn left(&mut self, turn: Turn) {
        self.heard.take_if(|(heard, _)| *heard == turn);
    }

    /// How long ago something came from the writer, if it is connected.
    pub fn heard(&self) -> Option<Duration> {
        self.heard.map(|(_, when)| when.elapsed())
    }

    /// Two writers that found the same log may both ask for it. Once enough copies are of the turn of one of them that one
    /// serves; it must not be fenced by the other one, who has not seen it.
    fn is_as_found(&self, epoch: Epoch, terms: Option<&Terms>) -> Result<(), Refused> {
        let Some((counter, writer)) = terms.and_then(|terms| terms.found) else { return Ok(()) };
        let at = self.copy.position().epoch;
        if at <= (Epoch { counter, writer }) || at == epoch {
            return Ok(());
        }
        Err(Refused::new(Refusal::Taken, format!("{} now", self.who_has_it())))
    }

    fn who_has_it(&self) -> String {
        let Epoch { counter, writer } = self.copy.promised();
        let holder = self.meta.holder.as_ref();
        let host = holder.map_or_else(|| format!("writer {writer:016x}"), ToString::to_string);
        format!("{host} has this log, in turn {counter}")
    }

    /// Answers a frame of whoever has this turn.
    ///
    /// # Errors
    /// [`Refused`]; nothing was changed then.
    pub fn answer(&mut self, turn: Turn, frame: &Frame, body: &[u8]) -> Result<Answer, Refused> {
        let at = self.copy.position();
        let mut answer = answer(&mut self.copy, turn, frame, body).map_err(|refusal| match refusal {
            Refusal::Fenced => Refused::new(refusal, self.who_has_it()),
            _ => Refused::new(
                refusal,
                format!("this keeper does not expect {:?} for a copy at {at:?}", frame.kind()),
            ),
        })?;
        self.heard = Some((turn, Instant::now()));
        if self.spool.is_some() && frame.kind().is_some_and(Kind::changes) {
            self.unspooled.push(frame, body);
        }
        if self.harden == Harden::Affirm {
            self.spool_all()?;
        }
        if let Answer::Ack(ack) = &mut answer {
            if self.harden == Harden::Affirm {
                self.harden()?;
            }
            ack.previous = self.hardened;
        }
        Ok(answer)
    }

    /// Looks whether whoever has this turn may have the log forgotten.
    ///
    /// # Errors
    /// [`Refused`] if the turn is over.
    pub(crate) fn may_forget(&self, turn: Turn) -> Result<(), Refused> {
        self.copy.may_forget(turn).map_err(|refusal| Refused::new(refusal, "another writer's turn has begun"))
    }

    /// It was forgotten: what others still do to it must not reach a log that is made in its place.
    pub(crate) fn is_gone_to(&mut self, directory: &Path) {
        self.directory = directory.to_owned();
    }

    /// A stretch of the image, for whoever has this turn; `None` for somebody who only looks, while whoever has the promise
    /// may go on.
    ///
    /// # Errors
    /// [`Refused`] if the turn is over.
    pub fn stretch(
        &self,
        turn: Option<Turn>,
        from: u64,
        most: usize,
    ) -> Result<Option<(u64, Vec<u8>)>, Refused> {
        let may = turn.map_or(Ok(()), |turn| self.copy.may_fetch(turn));
        may.map_err(|refusal| Refused::new(refusal, "another writer's turn has begun"))?;
        Ok(self.copy.stretch(from, most).map(|(at, bytes)| (at, bytes.to_vec())))
    }
}

/// The file with what must not be forgotten of a log.
pub(crate) fn meta_of(directory: &Path) -> PathBuf {
    directory.join("promise.json")
}

fn copy_of(directory: &Path) -> PathBuf {
    directory.join("copy")
}

#[cfg(test)]
mod tests;
