//! A file's name, made durable without the file's data, by a sync of the directory that it is in.
//!
//! Input: a descriptor of the file, and the path where it should be. Output: the directory is synced, or that was not
//! the right way: the name there is not this file's (renamed again, removed, another mount namespace or root
//! directory), the file has several names, any of which may be meant, or the directory may not be read.

use core::ffi::CStr;

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, fsync, openat, statat};
use rustix::io::Errno;

use crate::certain;

/// As PATH_MAX.
const PATH_MAX: usize = 4096;

/// False if the caller has to sync the file itself.
///
/// # Errors
/// The disk's error: do not ask again in the hope of another answer.
pub fn sync(fd: BorrowedFd<'_>, path: &[u8]) -> Result<bool, Errno> {
    let Some(directory) = directory(fd, path) else { return Ok(false) };
    match fsync(&directory) {
        Ok(()) => certain::check(fd).map(|()| true),
        Err(Errno::BADF | Errno::INTR | Errno::INVAL | Errno::NOSYS) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The directory in which the file behind `fd` has its only name, if `path` leads there.
fn directory(fd: BorrowedFd<'_>, path: &[u8]) -> Option<OwnedFd> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    let (mut above, mut name) = ([0; PATH_MAX], [0; 256]);
    let above = terminated(&mut above, &path[..slash.max(1)]).filter(|_| path[0] == b'/')?;
    let name = terminated(&mut name, &path[slash + 1..])?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, above, flags, Mode::empty()).ok()?;
    let (file, named) = (fstat(fd).ok()?, statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?);
    let same = (file.st_dev, file.st_ino) == (named.st_dev, named.st_ino);
    (same && file.st_nlink == 1).then_some(directory)
}

/// `text` as a C string in `room`.
fn terminated<'r>(room: &'r mut [u8], text: &[u8]) -> Option<&'r CStr> {
    let end = text.len() + 1;
    room.get_mut(..end)?[..text.len()].copy_from_slice(text);
    CStr::from_bytes_with_nul(room.get(..end)?).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use super::sync;

    fn is_synced(file: &File, path: &Path) -> bool {
        sync(file.as_fd(), path.as_os_str().as_bytes()).expect("no error of the disk")
    }

    // Holds: L7
    #[test]
    fn the_directory_of_the_only_name_is_synced_and_no_other() {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        let file = File::create(&old).expect("created");
        assert!(is_synced(&file, &old));
        fs::rename(&old, &new).expect("renamed");
        assert!(!is_synced(&file, &old), "nothing is there");
        assert!(is_synced(&file, &new));
        fs::write(&old, "another").expect("written");
        assert!(!is_synced(&file, &old), "another file");
        fs::remove_file(&old).expect("removed");
        std::os::unix::fs::symlink(&new, &old).expect("linked");
        assert!(!is_synced(&file, &old), "a symbolic link to it");
        fs::hard_link(&new, dir.path().join("second")).expect("linked");
        assert!(!is_synced(&file, &new), "which of the names is meant?");
        assert!(!is_synced(&file, Path::new("new")) && !is_synced(&file, Path::new("/")));
        fs::remove_file(dir.path().join("second")).expect("removed");
        assert!(is_synced(&file, &new));
        fs::remove_file(&new).expect("removed");
        assert!(!is_synced(&file, &new), "it has no name");
    }
}
