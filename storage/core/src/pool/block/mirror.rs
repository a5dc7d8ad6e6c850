//! A log on two devices: a start finds both copies, believes one of them (`verdict`), and makes the other one equal to it
//! (`equal`).
//!
//! The copy that is not believed is marked unfinished, made equal, and only then counted again. Nothing is acknowledged
//! before that. Wherever this is cut, the next start finds one of the verdict's rows again.
//!
//! A copy that was lost and then replaced may turn up again, as stale as it is. The copy that it names as its partner
//! names the replacement, so those two are used instead.
//!
//! Not handled here: a copy that fails while it is written (`journal::mirror`); replacing a lost copy while the log is
//! in use (`replace`).

mod copy;
mod equal;
mod joining;
mod verdict;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use seawall_media::block::{Anchor, MirrorState};
use seawall_media::locks::lock;

use super::super::error::PoolError;
use super::super::steps::io as failing;
use super::device::device;
use super::label;
use copy::agreed;
pub(super) use copy::{Copy, fits, is_at};
use equal::{equal, missing};
pub use joining::join;
pub(super) use joining::{introduce, part};
pub use verdict::{Verdict, decide};

/// The copies of an open pool.
#[derive(Debug)]
pub struct Mirrored {
    places: Mutex<[Place; 2]>,
    /// What was done at the start, and what is missing: messages for the operator.
    pub notes: Vec<String>,
}

/// Where a copy is, or was, and its lock.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    lock: Option<File>,
}

impl Mirrored {
    /// Where they lie.
    pub fn paths(&self) -> [PathBuf; 2] {
        self.places().each_ref().map(|place| place.path.clone())
    }

    /// Another descriptor for the one that holds a copy's lock.
    pub(super) fn held(&self, copy: usize) -> io::Result<Option<File>> {
        self.places()[copy].lock.as_ref().map(File::try_clone).transpose()
    }

    /// From now on the copy is at another place.
    pub(super) fn put(&self, copy: usize, path: PathBuf, lock: File) {
        self.places()[copy] = Place { path, lock: Some(lock) };
    }

    fn places(&self) -> MutexGuard<'_, [Place; 2]> {
        lock(&self.places)
    }
}

/// Both copies of a mirrored log.
pub(super) struct Pair {
    pub this: Copy,
    pub other: Result<Copy, PoolError>,
    /// Where the other one is, or was.
    pub place: PathBuf,
    /// The path by which it was opened, if that leads to a copy that another one has replaced.
    former: Option<PathBuf>,
    /// What was done to the copies, and what is missing: messages for the operator.
    pub notes: Vec<String>,
}

impl Pair {
    /// Opens the other copy of a log that is open. `None` if it is not mirrored.
    ///
    /// # Errors
    /// If somebody uses the other one.
    pub fn of(file: &File, path: &Path, anchor: Anchor) -> Result<Option<Self>, PoolError> {
        if anchor.mirror().is_none() {
            return Ok(None);
        }
        let file = file.try_clone().map_err(failing(path, "open"))?;
        let place = label::read(&file, anchor.size).map_err(failing(path, "read"))?;
        let this = Copy { file, path: path.into(), anchor };
        let pair = Self::at(this, place)?;
        match pair.third() {
            None => Ok(Some(pair)),
            Some(place) => pair.of_the_other_one(place).map(Some),
        }
    }

    /// The path that the other copy names as its partner, if it is not this one.
    fn third(&self) -> Option<PathBuf> {
        let other = self.other.as_ref().ok()?;
        let place = label::read(&other.file, self.this.anchor.size).ok()?;
        // This one may have been moved. If it was not, the other one would not say "both" without it.
        let is_moved =
            !place.exists() && (other.said().state != MirrorState::Both || agreed(&self.this, other));
        (!is_moved && !self.this.is_at(&place)).then_some(place)
    }

    fn at(this: Copy, place: PathBuf) -> Result<Self, PoolError> {
        let other = match Copy::open(&place) {
            Err(error @ PoolError::InUse(_)) => return Err(error),
            other => other.and_then(|other| fits(&this, other)),
        };
        Ok(Self { this, other, place, former: None, notes: Vec::new() })
    }

    /// The pair that the other copy belongs to: there, another copy has this one's place.
    fn of_the_other_one(self, place: PathBuf) -> Result<Self, PoolError> {
        let Self { this: former, other, .. } = self;
        let mut pair = Self::at(other?, place)?;
        pair.former = Some(former.path);
        Ok(pair)
    }

    /// The copies of the pool that this pair makes up.
    pub fn mirrored(self) -> Mirrored {
        let (copy, mut notes) = (self.this.said().copy, self.notes);
        notes.extend(self.former.map(|former| {
            format!(
                "{} is no longer a copy of the log: name {} or {} instead",
                former.display(),
                self.this.path.display(),
                self.place.display()
            )
        }));
        let this = Place { path: self.this.path, lock: Some(self.this.file) };
        let other = Place { path: self.place, lock: self.other.ok().map(|other| other.file) };
        let places = if copy == 0 { [this, other] } else { [other, this] };
        Mirrored { places: Mutex::new(places), notes }
    }

    /// The anchor of a copy that is written now: the log is in use in this boot, and its desk names the copies that are
    /// written.
    ///
    /// # Errors
    /// If one of them is not there.
    pub fn written(&self, copies: u32) -> Result<Anchor, PoolError> {
        let mine = self.this.said().copy;
        match &self.other {
            Ok(other) if copies >> mine & 1 == 0 => Ok(other.anchor),
            Err(error) if copies >> (1 - mine) & 1 != 0 => Err(PoolError::MirrorMissing {
                path: self.this.path.clone(),
                other: self.place.clone(),
                why: error.to_string(),
            }),
            _ => Ok(self.this.anchor),
        }
    }

    /// The devices of the first and the second copy; this copy's is open already. If one copy is gone, this copy's
    /// descriptor stands in its place, and nothing is written through that number.
    pub fn devices(&self, this: OwnedFd) -> io::Result<[OwnedFd; 2]> {
        let other = if self.other.is_ok() { device(&self.place)?.0 } else { this.try_clone()? };
        Ok(if self.this.said().copy == 0 { [this, other] } else { [other, this] })
    }

    /// Makes this copy fit to go on with, and the other one equal to it, if that is there. Notes what was done.
    ///
    /// # Errors
    /// [`PoolError`]: this copy cannot be believed, or it cannot be made equal.
    pub fn settle(&mut self) -> Result<(), PoolError> {
        self.notes = self.carry_out()?;
        if self.this.said().state != MirrorState::Unfinished {
            return Ok(());
        }
        // A process that opened the log by this path goes on with this copy.
        let (path, other) = (self.this.path.clone(), self.place.clone());
        Err(PoolError::MirrorLost { path, other, why: self.notes.join("; ") })
    }

    /// Does what the verdict on the copies asks for, and returns what that was.
    fn carry_out(&mut self) -> Result<Vec<String>, PoolError> {
        let other = self.other.as_mut().map_err(|error| error.to_string());
        let verdict = decide(self.this.said(), other.as_ref().ok().map(|other| other.said()));
        let (path, place) = (self.this.path.clone(), self.place.clone());
        match (verdict, other) {
            (Verdict::Alone, Err(why)) => Ok(vec![missing(&path, &place, &why)]),
            (Verdict::Missing, Err(why)) => Err(PoolError::MirrorMissing { path, other: place, why }),
            (Verdict::Split, _) => Err(PoolError::MirrorSplit { path, other: place }),
            (Verdict::Compare, Ok(other)) => match more(&self.this, other)? {
                true => equal(&mut self.this, other),
                false => equal(other, &mut self.this),
            },
            (Verdict::This, Ok(other)) => {
                self.this.read()?;
                equal(&mut self.this, other)
            }
            (Verdict::Other, Ok(other)) => {
                other.read()?;
                equal(other, &mut self.this)
            }
            _ => Err(PoolError::MirrorUnfinished { path, other: place }),
        }
    }
}

/// True if this copy holds as much as the other one, or the other one cannot be read.
fn more(this: &Copy, other: &Copy) -> Result<bool, PoolError> {
    match (this.read(), other.read()) {
        (Ok(this), Ok(other)) => Ok((this.last, this.anchor.sequence) >= (other.last, other.anchor.sequence)),
        (Ok(_), Err(_)) => Ok(true),
        (Err(_), Ok(_)) => Ok(false),
        (Err(error), Err(_)) => Err(error),
    }
}
