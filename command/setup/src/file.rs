//! Small files of the machine, written whole.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Uid, fchown};
use seawall_media::durable;

use crate::error::Error;

/// The mode of what everybody may read.
pub const SHARED: u32 = 0o644;

/// The text of a file; empty where there is none.
///
/// # Errors
/// It is there and cannot be read.
pub fn text(path: &Path) -> Result<String, Error> {
    match fs::read_to_string(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(Error::file(path)),
    }
}

/// Makes a file, and the directories above it. Nothing is replaced.
///
/// # Errors
/// There is one already, or the disk's.
pub fn create(path: &Path, text: &str) -> Result<(), Error> {
    directory_above(path)?;
    durable::create(path, SHARED, text.as_bytes()).map_err(Error::file(path))
}

/// Replaces a file, or makes one. The owner and the mode of one that is there stay.
///
/// # Errors
/// The disk's.
pub fn replace(path: &Path, text: &str) -> Result<(), Error> {
    directory_above(path)?;
    let former = fs::metadata(path).ok();
    let keep = |file: &File| {
        let mode = former.as_ref().map_or(SHARED, |found| found.mode() & 0o7777);
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        let Some(found) = &former else { return Ok(()) };
        Ok(fchown(file, Some(Uid::from_raw(found.uid())), Some(Gid::from_raw(found.gid())))?)
    };
    durable::replace(path, &beside(path), text.as_bytes(), keep).map_err(Error::file(path))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".seawall-new");
    path.with_file_name(name)
}

fn directory_above(path: &Path) -> Result<(), Error> {
    let Some(above) = path.parent() else { return Ok(()) };
    fs::create_dir_all(above).map_err(Error::file(above))
}
