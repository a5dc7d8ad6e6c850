//! A log that nobody uses gets a second copy, or goes on without it for good.

use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use seawall_media::block::{Mirror, MirrorState, probe_block, size_of};

use super::copy::Copy;
use super::equal::{Side, rebuild};
use crate::pool::block::device::is_device;
use crate::pool::block::{label, make};
use crate::pool::error::PoolError;
use crate::pool::steps::io as failing;

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
pub fn introduce(this: &Copy, said: Mirror, file: File, place: &Path) -> Result<Copy, PoolError> {
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
pub fn part(path: &Path) -> Result<(), PoolError> {
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
