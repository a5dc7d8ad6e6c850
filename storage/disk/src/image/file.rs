//! The file of an image, before and after it is a disk: where it lies, whether it can be one, who has it, how long it is.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use seawall_daemon::guard;
use seawall_daemon::place::beside;

use crate::config::SECTOR;
use crate::failure::Refused;
use crate::lock;

/// The suffix that the true file has while its guard has its name.
const ASIDE: &str = ".seawall";
const QCOW2: [u8; 4] = *b"QFI\xfb";

/// Makes an image larger that nobody serves, and nothing of which is in a log.
///
/// # Errors
/// [`Refused`].
pub fn grow(path: &Path, bytes: u64) -> Result<(), Refused> {
    let failed = || Refused::failed(path.display().to_string());
    if is_guarded(path) {
        return Err(Refused::InLog(path.into()));
    }
    let file = File::options().read(true).write(true).open(path).map_err(failed())?;
    may_become(path, check(path, &file)?.len(), bytes)?;
    if !lock_at(path, &file, false)? {
        return Err(Refused::InUse(path.into()));
    }
    file.set_len(bytes).and_then(|()| file.sync_all()).map_err(failed())
}

/// Looks whether a disk that has `now` bytes may become one of so many.
///
/// # Errors
/// [`Refused::Smaller`]: it may not.
pub fn may_become(path: &Path, now: u64, bytes: u64) -> Result<(), Refused> {
    match bytes >= now && bytes.is_multiple_of(SECTOR) {
        true => Ok(()),
        false => Err(Refused::Smaller { path: path.into(), now, bytes }),
    }
}

/// Why the daemon does not take it, as far as that can be seen.
pub(super) fn why_not(path: &Path) -> String {
    match guard::claimed(path) {
        Some(other) => format!(
            "it says that it belongs to the pool {pool}: use that pool, or recover it first (`seawall recover --pool {pool}`)",
            pool = other.pool.display()
        ),
        None => "the daemon's log says why (`seawall status` shows it too)".to_owned(),
    }
}

/// False: somebody has it who does not go with us.
pub(super) fn lock_at(path: &Path, file: &File, is_read_only: bool) -> Result<bool, Refused> {
    let failed = |e: nix::errno::Errno| Refused::failed(format!("cannot lock {}", path.display()))(e.into());
    lock::take(file, is_read_only).map_err(failed)
}

/// True if a guard has the image's name.
fn is_guarded(path: &Path) -> bool {
    guard::claimed(path).is_some() || guard::is_up(path)
}

/// The true file: a guard may have its name.
pub(super) fn open_true(path: &Path, is_read_only: bool) -> io::Result<File> {
    let open = |path: &Path| File::options().read(true).write(!is_read_only).open(path);
    if is_guarded(path) { open(&beside(path, ASIDE)) } else { open(path) }
}

/// What it is, if it can be a disk.
pub(super) fn check(path: &Path, file: &File) -> Result<Metadata, Refused> {
    let stat = file.metadata().map_err(Refused::failed(path.display().to_string()))?;
    if !stat.is_file() {
        return Err(Refused::NoFile(path.into()));
    }
    let mut magic = [0; 4];
    if file.read_exact_at(&mut magic, 0).is_ok() && magic == QCOW2 {
        return Err(Refused::Qcow2(path.into()));
    }
    match stat.len() {
        bytes if bytes > 0 && bytes.is_multiple_of(SECTOR) => Ok(stat),
        bytes => Err(Refused::Size { path: path.into(), bytes }),
    }
}
