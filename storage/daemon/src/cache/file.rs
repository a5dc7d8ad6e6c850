//! The files of a cache: opened, told apart by what they lie on, and mapped.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{OFlags, fstatfs};
use seawall_cache::shared::Recovered;
use seawall_media::{Medium, Region, magic, probe};

use super::error::{CacheError, failed};
use crate::log::Log;

/// A file of this user, if there is one.
pub(super) fn open_file(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = OpenOptions::new().read(true).write(true).custom_flags(flags.bits() as i32).open(path);
    let file = match opened {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let stat = file.metadata()?;
    if !stat.is_file() || stat.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "it is not a regular file of this user"));
    }
    Ok(Some(file))
}

/// Persistent memory, or RAM that is named as such: a file of an ordinary file system is neither, but on a disk.
pub(super) fn medium(file: &File, path: &Path) -> Result<Medium, CacheError> {
    let probed = probe(file).map_err(|e| failed(path, "probe")(io::Error::other(e)))?;
    let is_ram = || fstatfs(file).is_ok_and(|fs| fs.f_type as u64 == magic::TMPFS);
    if probed.medium == Medium::Pmem || is_ram() {
        return Ok(probed.medium);
    }
    Ok(Medium::Block)
}

pub(super) fn map(file: &File, path: &Path, len: u64, medium: Medium) -> Result<Region, CacheError> {
    Region::map(file, len, medium == Medium::Pmem)
        .map_err(|e| failed(path, "map")(io::Error::other(format!("{e:?}"))))
}

/// Says what was found of a cache.
pub(super) fn tell(log: &Log, path: &Path, found: &Recovered) {
    let Recovered { kept, dropped, was_cut } = found;
    let why = if *was_cut { ", as far as they are known to be on the disk" } else { "" };
    log.say(format!("found the block cache {} with {kept} blocks{why}; {dropped} dropped", path.display()));
}
