//! Replacing a lost copy while the log is in use: the new copy is checked, and made known to both copies.
//!
//! | cut | what a start finds |
//! |---|---|
//! | before the remaining copy names it | what it found before |
//! | before the rebuild begins, or before it ends | the remaining copy alone, the one that it names unfinished |
//!
//! Not handled here: the rebuild itself (`journal::rebuild`).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;

use super::super::error::PoolError;
use super::super::file::directory;
use super::super::opened::Pool;
use super::super::steps::io as failing;
use super::device::{device, is_device, is_journal, open_locked};
use super::mirror::{Copy, Verdict, decide, fits, introduce, is_at};
use super::{label, make};

/// Everything that a [`Rebuild`](crate::journal::rebuild::Rebuild) begins with.
pub struct Replacement {
    /// The devices of the first and the second copy from now on.
    pub devices: [OwnedFd; 2],
    /// Reads the remaining copy.
    pub source: File,
}

impl Pool {
    /// Gives the place of the lost copy to what is at `place`: a new file, an empty device, or the lost copy itself, if
    /// it works again. With `force` a device's content is overwritten.
    ///
    /// # Errors
    /// [`PoolError`]: no copy was lost, or this cannot take its place. The log goes on as before.
    pub fn replace_copy(&self, place: &Path, force: bool) -> Result<Replacement, PoolError> {
        let no = |why: &str| PoolError::Mirror { path: place.into(), why: why.into() };
        let (Some(mirror), Some(journal)) = (&self.mirror, self.region.journal()) else {
            return Err(no(
                "the log has no second copy: to give it one, use `seawall stop`, then `seawall mirror`",
            ));
        };
        let lost = match journal.desk(&self.region).copies().load(SeqCst) {
            1 => 1,
            2 => 0,
            _ => return Err(no("the log is already mirrored, and both copies are complete")),
        };
        let path = &mirror.paths()[1 - lost];
        let left = journal.way().lend().1[1 - lost];
        let this = Copy::of(again(left).map_err(failing(path, "open"))?, path)?;
        let held = mirror.held(lost).map_err(failing(place, "open"))?;
        let lock = self.lock.as_ref().map(File::try_clone).transpose().map_err(failing(place, "open"))?;
        let file = candidate(&this, held.into_iter().chain(lock), place, force)?;
        let other = introduce(&this, this.said(), file, place)?;
        let there = device(&by_number(&other.file)).map_err(failing(place, "open"))?.0;
        let here = left.try_clone_to_owned().map_err(failing(path, "open"))?;
        let place = std::path::absolute(place).map_err(failing(place, "resolve"))?;
        mirror.put(lost, place, other.file);
        let devices = if lost == 0 { [there, here] } else { [here, there] };
        Ok(Replacement { devices, source: this.file })
    }
}

/// Another open file description of the same file, for reading and writing through the page cache.
fn again(fd: BorrowedFd<'_>) -> io::Result<File> {
    File::options().read(true).write(true).open(by_number(&fd))
}

fn by_number(fd: &impl AsRawFd) -> PathBuf {
    format!("/proc/self/fd/{}", fd.as_raw_fd()).into()
}

/// The file or device at that place, locked, or a new file. `held` are former copies, which are locked already.
fn candidate(
    this: &Copy,
    mut held: impl Iterator<Item = File>,
    place: &Path,
    force: bool,
) -> Result<File, PoolError> {
    let no = |why: &str| PoolError::Mirror { path: place.into(), why: why.into() };
    let (is_device, size) = (is_device(place), this.anchor.size + label::BYTES);
    make::check_medium(if is_device { place } else { directory(place) })?;
    if this.is_at(place) {
        return Err(no("it is the log's other copy, to which commits still go"));
    }
    if !place.exists() {
        return make::room(place, size);
    }
    // This check comes before the lock: it may be somebody else's file.
    if !is_device && !is_journal(place)? {
        return Err(no("it already exists"));
    }
    let held = held.find(|held| is_at(held, place));
    let is_held = held.is_some();
    let file = held.map_or_else(|| open_locked(place), Ok)?;
    make::check_room(&file, place, size)?;
    let former = file.try_clone().map_err(failing(place, "open"))?;
    let former = Copy::of(former, place).and_then(|copy| fits(this, copy)).ok();
    match former {
        Some(copy) if decide(this.said(), Some(copy.said())) == Verdict::This => Ok(file),
        None if is_held => Ok(file),
        Some(_) if !is_device => {
            Err(no("it went on alone, and may hold records that this log lacks: move it away"))
        }
        None if !is_device => Err(no("it holds another log")),
        _ => make::check_empty(&file, place, force).map(|()| file),
    }
}
