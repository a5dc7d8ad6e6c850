//! Finds a managed file again after the daemon's death: by its name, else anywhere in its directory, proven
//! by its identity in both cases.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use seawall_media::{Identity, identity};

/// The file, open for reading, and its path.
pub(crate) fn find(root: &Path, hint: &Path, wanted: &Identity) -> Option<(File, PathBuf)> {
    let named = root.join(hint);
    open(&named, wanted).map(|file| (file, named)).or_else(|| search(root, wanted))
}

fn open(path: &Path, wanted: &Identity) -> Option<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path).ok()?;
    identity(&file).is_ok_and(|found| found == *wanted).then_some(file)
}

fn search(dir: &Path, wanted: &Identity) -> Option<(File, PathBuf)> {
    for entry in std::fs::read_dir(dir).ok()?.flatten() {
        let (path, kind) = (entry.path(), entry.file_type().ok()?);
        let found = if kind.is_dir() {
            open(&path, wanted).map(|found| (found, path.clone())).or_else(|| search(&path, wanted))
        } else if kind.is_file() {
            open(&path, wanted).map(|file| (file, path))
        } else {
            None
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_file_is_found_and_a_replaced_one_is_not() {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let (old, new) = (dir.path().join("old"), dir.path().join("sub/new"));
        std::fs::create_dir(dir.path().join("sub")).expect("made");
        std::fs::write(&old, "x").expect("written");
        let id = identity(File::open(&old).expect("open")).expect("an identity");
        std::fs::rename(&old, &new).expect("renamed");
        std::fs::write(&old, "another").expect("written");
        assert_eq!(find(dir.path(), Path::new("old"), &id).expect("found").1, new);
        std::fs::remove_file(&new).expect("removed");
        assert!(find(dir.path(), Path::new("old"), &id).is_none());
    }
}
