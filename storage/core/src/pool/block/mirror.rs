//! A log on two devices: which copy is believed at a start, and how the other one is made equal to it.
//!
//! Each copy's anchors state one of three things: what was acknowledged is on both ("both"); it is here alone since the
//! other copy was lost ("alone"); this copy is still being made from the other one ("unfinished"). The statement
//! carries an epoch that grows whenever the state changes. A copy says "alone" before anything is acknowledged on it
//! alone, so from then on the other one's epoch is older.
//!
//! | this copy | the other one | what is done |
//! |---|---|---|
//! | both | both, same epoch | both are read: the one that holds more is believed (if one cannot be read: the other one) |
//! | unfinished | both, or alone | the other one is believed |
//! | any | any, with another epoch, not both alone | the one with the higher epoch is believed |
//! | alone | gone | it goes on alone |
//! | both | gone | refused: the missing one may have gone on alone |
//! | unfinished | gone, or unfinished | refused: it is not whole |
//! | alone | alone | refused: both went on, each without the other one |
//! | alone | both, same epoch | refused: this is impossible |
//!
//! The copy that is not believed is marked unfinished, made equal, and only then counted again. Nothing is acknowledged
//! before that. Wherever this is cut, the next start finds one of these rows again.
//!
//! A copy that was lost and then replaced may turn up again, as stale as it is. The copy that it names as its partner
//! names the replacement, so those two are used instead.
//!
//! Not handled here: a copy that fails while it is written (`journal::mirror`); replacing a lost copy while the log is
//! in use (`replace`).

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use seawall_media::block::{Anchor, Mirror, MirrorState, RING_AT, Recovered, probe_block, size_of};
use seawall_media::locks::lock;

use super::super::error::PoolError;
use super::super::steps::io as failing;
use super::device::{self as device_of, is_device, open_locked};
use super::{label, make};
use crate::journal::open;

/// Bytes that are compared and copied at a time.
const PIECE: u64 = 1 << 20;

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

/// The verdict on two copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both are read, and the one that holds more is believed.
    Compare,
    /// This one is believed.
    This,
    /// The other one is believed.
    Other,
    /// Only this one exists, and it is whole.
    Alone,
    /// The other one is gone, and may hold more.
    Missing,
    /// Neither is whole.
    Unfinished,
    /// Both went on alone.
    Split,
}

/// Decides by what the copies' anchors say; see the table above.
pub fn decide(this: Mirror, other: Option<Mirror>) -> Verdict {
    use MirrorState::{Alone, Both, Unfinished};
    let Some(other) = other else {
        return match this.state {
            Alone => Verdict::Alone,
            Both => Verdict::Missing,
            Unfinished => Verdict::Unfinished,
        };
    };
    match (this.state, other.state) {
        (Unfinished, Unfinished) => Verdict::Unfinished,
        (Unfinished, _) => Verdict::Other,
        (_, Unfinished) => Verdict::This,
        (Alone, Alone) => Verdict::Split,
        (Both, Both) if this.epoch == other.epoch => Verdict::Compare,
        _ if this.epoch > other.epoch => Verdict::This,
        _ if this.epoch < other.epoch => Verdict::Other,
        _ => Verdict::Split,
    }
}

/// One copy, open and locked.
pub(super) struct Copy {
    pub file: File,
    pub path: PathBuf,
    pub anchor: Anchor,
}

impl Copy {
    fn open(path: &Path) -> Result<Self, PoolError> {
        Self::of(open_locked(path)?, path)
    }

    /// The copy in an open file.
    pub fn of(file: File, path: &Path) -> Result<Self, PoolError> {
        let anchor =
            open::anchor_of(&file).map_err(|error| PoolError::Journal { path: path.into(), error })?;
        Ok(Self { file, path: path.into(), anchor })
    }

    pub fn said(&self) -> Mirror {
        self.anchor.mirror().unwrap_or(Mirror { copy: 0, state: MirrorState::Alone, epoch: 0 })
    }

    fn read(&self) -> Result<Recovered, PoolError> {
        open::read_only(&self.file).map_err(|error| PoolError::Journal { path: self.path.clone(), error })
    }

    /// True if the copy lies at this path.
    pub fn is_at(&self, path: &Path) -> bool {
        is_at(&self.file, path)
    }

    /// Writes both places of the anchor, the newer one last.
    fn say(&mut self, like: &Anchor, sequence: u64, said: Mirror) -> Result<(), PoolError> {
        for sequence in [sequence - 1, sequence] {
            self.anchor = like.with_mirror(Some(said));
            self.anchor.sequence = sequence;
            let written = self.file.write_all_at(&self.anchor.seal(), Anchor::place(sequence));
            let synced = written.and_then(|()| self.file.sync_data());
            synced.map_err(failing(&self.path, "write to"))?;
        }
        Ok(())
    }

    /// From now on it is not believed, until it is made equal to the other one.
    fn say_unfinished(&mut self) -> Result<(), PoolError> {
        let (like, sequence) = (self.anchor, self.anchor.sequence + 2);
        let said = Mirror { state: MirrorState::Unfinished, ..self.said() };
        self.say(&like, sequence, said)
    }

    fn say_alone(&mut self) -> Result<(), PoolError> {
        let (like, said) = (self.anchor, self.said());
        let epoch = next(&self.path, said.epoch)?;
        self.say(&like, like.sequence + 2, Mirror { state: MirrorState::Alone, epoch, ..said })
    }
}

fn next(path: &Path, epoch: u16) -> Result<u16, PoolError> {
    epoch.checked_add(1).ok_or_else(|| PoolError::Mirror {
        path: path.into(),
        why: "its copies changed too often: make a new log".into(),
    })
}

/// Both copies of a mirrored log.
pub(super) struct Pair {
    pub this: Copy,
    pub other: Result<Copy, PoolError>,
    /// Where the other one is, or was.
    pub place: PathBuf,
    /// The path by which it was opened, if that leads to a copy that another one has replaced.
    former: Option<PathBuf>,
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
        Ok(Self { this, other, place, former: None })
    }

    /// The pair that the other copy belongs to: there, another copy has this one's place.
    fn of_the_other_one(self, place: PathBuf) -> Result<Self, PoolError> {
        let Self { this: former, other, .. } = self;
        let mut pair = Self::at(other?, place)?;
        pair.former = Some(former.path);
        Ok(pair)
    }

    /// The copies of the pool that this pair makes up.
    pub fn mirrored(self, mut notes: Vec<String>) -> Mirrored {
        let copy = self.this.said().copy;
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
        let other = if self.other.is_ok() { device_of::device(&self.place)?.0 } else { this.try_clone()? };
        Ok(if self.this.said().copy == 0 { [this, other] } else { [other, this] })
    }

    /// Makes this copy fit to go on with, and the other one equal to it, if that is there. Returns what was done.
    ///
    /// # Errors
    /// [`PoolError`]: this copy cannot be believed, or it cannot be made equal.
    pub fn settle(&mut self) -> Result<Vec<String>, PoolError> {
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
        .and_then(|notes| {
            // A process that opened the log by this path goes on with this copy.
            let is_left_behind = self.this.said().state == MirrorState::Unfinished;
            let (path, other) = (self.this.path.clone(), self.place.clone());
            let why = notes.join("; ");
            if is_left_behind { Err(PoolError::MirrorLost { path, other, why }) } else { Ok(notes) }
        })
    }
}

/// True if this file or device lies there.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    let identity = |meta: std::fs::Metadata| match meta.file_type().is_block_device() {
        true => (true, meta.rdev(), 0),
        false => (false, meta.dev(), meta.ino()),
    };
    let [a, b] = [file.metadata(), std::fs::metadata(path)].map(|meta| meta.map(identity).ok());
    a.is_some() && a == b
}

pub(super) fn fits(this: &Copy, other: Copy) -> Result<Copy, PoolError> {
    let (a, b) = (&this.anchor, &other.anchor);
    let same = (a.uuid, a.size, a.image, a.block) == (b.uuid, b.size, b.image, b.block);
    let numbers = b.mirror().is_some_and(|said| said.copy != this.said().copy);
    if same && numbers {
        return Ok(other);
    }
    Err(PoolError::Mirror { path: other.path, why: "it holds another log".into() })
}

fn missing(path: &Path, place: &Path, why: &str) -> String {
    format!(
        "THE LOG HAS LOST ITS MIRROR {}: it is on {} alone ({why}). `seawall mirror` gives it another copy",
        place.display(),
        path.display()
    )
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

/// True if both say "both", under the same epoch.
fn agreed(this: &Copy, other: &Copy) -> bool {
    let (this, other) = (this.said(), other.said());
    (this.state, other.state) == (MirrorState::Both, MirrorState::Both) && this.epoch == other.epoch
}

/// Makes the second one equal to the first. If that fails, the first one goes on alone.
fn equal(believed: &mut Copy, other: &mut Copy) -> Result<Vec<String>, PoolError> {
    let start = |anchor: &Anchor| (anchor.sequence, anchor.tail, anchor.before);
    if start(&believed.anchor) == start(&other.anchor)
        && agreed(believed, other)
        && !differs(believed, other)?
    {
        return Ok(Vec::new());
    }
    let (from, to) = (believed.path.display().to_string(), other.path.display().to_string());
    match rebuild(believed, other) {
        Ok(bytes) => {
            let mib = bytes.div_ceil(1 << 20);
            Ok(vec![format!("the copy {to} was made equal to {from}: {mib} MiB differed")])
        }
        Err(Side::Other(error)) => {
            if believed.said().state != MirrorState::Alone {
                believed.say_alone()?;
            }
            Ok(vec![missing(&believed.path, &other.path, &error.to_string())])
        }
        Err(Side::Believed(error)) => Err(error),
    }
}

/// The copy that an error belongs to.
enum Side {
    Believed(PoolError),
    Other(PoolError),
}

fn rebuild(believed: &mut Copy, other: &mut Copy) -> Result<u64, Side> {
    other.say_unfinished().map_err(Side::Other)?;
    let bytes = copy(believed, other)?;
    agree(believed, other)?;
    Ok(bytes)
}

/// Makes the rings equal. Returns the number of bytes that were not.
fn copy(believed: &Copy, other: &Copy) -> Result<u64, Side> {
    let mut bytes = 0;
    pieces(believed, other, |at, from, to| {
        if to != Some(from) {
            bytes += from.len() as u64;
            other.file.write_all_at(from, at).map_err(failing(&other.path, "write to"))?;
        }
        Ok(true)
    })?;
    other.file.sync_all().map_err(failing(&other.path, "write to")).map_err(Side::Other)?;
    Ok(bytes)
}

fn differs(believed: &Copy, other: &Copy) -> Result<bool, PoolError> {
    let mut differs = false;
    let looked = pieces(believed, other, |_, from, to| {
        differs = to != Some(from);
        Ok(!differs)
    });
    match looked {
        Ok(()) => Ok(differs),
        Err(Side::Believed(error) | Side::Other(error)) => Err(error),
    }
}

/// Reads both rings piece by piece, until `each` stops it. An unreadable piece of the second one is `None`.
fn pieces(
    believed: &Copy,
    other: &Copy,
    mut each: impl FnMut(u64, &[u8], Option<&[u8]>) -> Result<bool, PoolError>,
) -> Result<(), Side> {
    for file in [&believed.file, &other.file] {
        // Reads from the device, not from what was cached of it before.
        let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
    }
    let (mut from, mut to) = (vec![0; PIECE as usize], vec![0; PIECE as usize]);
    let size = believed.anchor.size;
    for at in (RING_AT..size).step_by(PIECE as usize) {
        let len = PIECE.min(size - at) as usize;
        let read = believed.file.read_exact_at(&mut from[..len], at);
        read.map_err(failing(&believed.path, "read")).map_err(Side::Believed)?;
        let there = other.file.read_exact_at(&mut to[..len], at).is_ok();
        if !each(at, &from[..len], there.then_some(&to[..len])).map_err(Side::Other)? {
            break;
        }
    }
    Ok(())
}

/// Both say that from now on what is acknowledged is on both. The believed one says so first: otherwise the other one
/// could be ahead of it.
fn agree(believed: &mut Copy, other: &mut Copy) -> Result<(), Side> {
    let (like, was) = (believed.anchor, believed.said());
    let epoch = match was.state {
        MirrorState::Both => was.epoch,
        _ => next(&believed.path, was.epoch).map_err(Side::Believed)?,
    };
    let (sequence, copy) = (like.sequence + 2, other.said().copy);
    let said = |copy| Mirror { copy, state: MirrorState::Both, epoch };
    believed.say(&like, sequence, said(1 - copy)).map_err(Side::Believed)?;
    other.say(&like, sequence, said(copy)).map_err(Side::Other)
}

/// Gives a log that nobody uses a second copy at `place`: a new file, or an empty device. With `force` a device's
/// content is overwritten.
///
/// # Errors
/// [`PoolError`]. The log stays as it was, unless the copy was complete.
pub fn join(path: &Path, place: &Path, force: bool) -> Result<(), PoolError> {
    let no = |why: &str| PoolError::Mirror { path: place.into(), why: why.into() };
    let mut this = Copy::open(path)?;
    let said = match this.anchor.mirror() {
        None => Mirror { copy: 0, state: MirrorState::Alone, epoch: 0 },
        Some(said) if said.state == MirrorState::Alone => said,
        Some(_) => return Err(no("the log is already mirrored")),
    };
    this.read()?;
    let size = this.anchor.size + label::BYTES;
    make_room(&this, size)?;
    let file = match is_device(place) {
        true => device(&this, place, size, force)?,
        // Keeps the error from sounding as if the log itself were there.
        false => make::room(place, size).map_err(|error| match error {
            PoolError::Exists(_) => no("it already exists"),
            error => error,
        })?,
    };
    let mut other = introduce(&this, said, file, place)?;
    match rebuild(&mut this, &mut other) {
        Ok(_) => Ok(()),
        Err(Side::Believed(error)) => Err(error),
        Err(Side::Other(error)) => {
            // The log may say already that it has a mirror.
            if this.anchor.mirror().is_some_and(|said| said.state == MirrorState::Both) {
                this.say_alone()?;
            }
            Err(error)
        }
    }
}

/// The future other copy says that it is unfinished, whatever it said before; then each label gets the path of the
/// other one. `said` is what this copy says of itself.
pub(super) fn introduce(this: &Copy, said: Mirror, file: File, place: &Path) -> Result<Copy, PoolError> {
    let block = probe_block(&file).map_err(failing(place, "probe"))?.block();
    if block > this.anchor.block {
        let why = "its sectors are larger than the log's blocks".into();
        return Err(PoolError::Mirror { path: place.into(), why });
    }
    // The path is not resolved: a stable name may lead to another device after a restart.
    let name = |path: &Path| std::path::absolute(path).map_err(failing(path, "resolve"));
    let (here, there) = (name(&this.path)?, name(place)?);
    let unfinished = Mirror { copy: 1 - said.copy, state: MirrorState::Unfinished, epoch: said.epoch };
    let mut other = Copy { file, path: place.into(), anchor: this.anchor.with_mirror(Some(unfinished)) };
    other.say_unfinished()?;
    label::write(&other.file, this.anchor.size, &here).map_err(failing(place, "write to"))?;
    label::write(&this.file, this.anchor.size, &there).map_err(failing(&this.path, "write to"))?;
    Ok(other)
}

/// A file grows by the size of the label; a device must have room for it.
fn make_room(this: &Copy, size: u64) -> Result<(), PoolError> {
    let failed = || failing(&this.path, "make room in");
    let is_device = this.file.metadata().map_err(failed())?.file_type().is_block_device();
    let has = size_of(&this.file).map_err(failed())?;
    if has < size && !is_device {
        return this.file.set_len(size).map_err(failed());
    }
    if has >= size {
        return Ok(());
    }
    let why = "the log's own device has no room for the path of another copy: make a smaller log".into();
    Err(PoolError::Mirror { path: this.path.clone(), why })
}

fn device(this: &Copy, place: &Path, size: u64, force: bool) -> Result<File, PoolError> {
    let no = |why: &str| PoolError::Mirror { path: place.into(), why: why.into() };
    if this.is_at(place) {
        return Err(no("it is the log's own device"));
    }
    make::empty_device(place, size, force)
}

/// Has a log that nobody uses go on without its other copy, which is lost for good. Records that only the other copy
/// held are given up.
///
/// # Errors
/// [`PoolError`].
pub(super) fn part(path: &Path) -> Result<(), PoolError> {
    let mut this = Copy::open(path)?;
    let why = match this.anchor.mirror().map(|said| said.state) {
        None => "it is not mirrored",
        Some(MirrorState::Unfinished) => "it was never complete, and cannot be used alone",
        Some(MirrorState::Alone) => return Ok(()),
        Some(MirrorState::Both) => {
            this.read()?;
            return this.say_alone();
        }
    };
    Err(PoolError::Mirror { path: path.into(), why: why.into() })
}

#[cfg(test)]
mod tests {
    use MirrorState::{Alone, Both, Unfinished};

    use super::*;

    fn said(state: MirrorState, epoch: u16) -> Mirror {
        Mirror { copy: 0, state, epoch }
    }

    /// Every row of the table, from either side.
    // Holds: R16
    #[test]
    fn every_row_is_decided_as_the_table_says() {
        let rows = [
            ((Both, 4), (Both, 4), Verdict::Compare),
            ((Unfinished, 9), (Both, 4), Verdict::Other),
            ((Unfinished, 9), (Alone, 4), Verdict::Other),
            ((Alone, 5), (Both, 4), Verdict::This),
            ((Both, 5), (Both, 4), Verdict::This),
            ((Both, 6), (Alone, 5), Verdict::This),
            ((Unfinished, 4), (Unfinished, 4), Verdict::Unfinished),
            ((Alone, 5), (Alone, 5), Verdict::Split),
            ((Alone, 7), (Alone, 5), Verdict::Split),
            ((Alone, 4), (Both, 4), Verdict::Split),
        ];
        for (this, other, verdict) in rows {
            let (this, other) = (said(this.0, this.1), said(other.0, other.1));
            let turned = match verdict {
                Verdict::This => Verdict::Other,
                Verdict::Other => Verdict::This,
                verdict => verdict,
            };
            assert_eq!(decide(this, Some(other)), verdict, "{this:?} and {other:?}");
            assert_eq!(decide(other, Some(this)), turned, "{other:?} and {this:?}");
        }
        let alone = [(Alone, Verdict::Alone), (Both, Verdict::Missing), (Unfinished, Verdict::Unfinished)];
        for (state, verdict) in alone {
            assert_eq!(decide(said(state, 4), None), verdict, "{state:?} and none");
        }
    }
}
