//! Small files that are put somewhere as a whole, durably: after a crash there is what was there before, or all of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Puts these bytes in the place of whatever is at `path`. They are written to `temporary` first, which is in the same
/// directory, and where anything is a leftover. `prepare` gives that file its owner and mode, while it is empty.
///
/// # Errors
/// The disk's, and those of `prepare`. The former file is there then, or this one: what is not known is whether it is durable.
pub fn replace(
    path: &Path,
    temporary: &Path,
    bytes: &[u8],
    prepare: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    remove(temporary)?;
    // Not through a link that somebody put there.
    let file = File::create_new(temporary)?;
    let done = prepare(&file).and_then(|()| fill(&file, bytes)).and_then(|()| fs::rename(temporary, path));
    if done.is_err() {
        // The caller gets that error; to hear that this file stays too would help nobody.
        let _ = fs::remove_file(temporary);
    }
    done?;
    sync_name(path)
}

/// Makes a file of this mode with these bytes, where nothing is. A crash meanwhile may leave a part of it.
///
/// # Errors
/// The disk's; AlreadyExists.
pub fn create(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    fill(&file, bytes)?;
    sync_name(path)
}

fn fill(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// Removes a file. False: there was none. That it has gone is [durable](sync_name) later.
///
/// # Errors
/// The disk's.
pub fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

/// Makes the name of a file durable, or that it has gone.
///
/// # Errors
/// The disk's.
pub fn sync_name(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync_directory(directory.unwrap_or(Path::new(".")))
}

/// Makes durable which names are in a directory.
///
/// # Errors
/// The disk's.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_whatever_was_left_beside_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let [path, temporary, other] = ["it", "it.new", "other"].map(|name| directory.path().join(name));
        let private = |file: &File| file.set_permissions(fs::Permissions::from_mode(0o600));
        fs::write(&other, "a stranger's").expect("written");
        symlink(&other, &temporary).expect("a link");
        for text in ["a long first one", "second"] {
            replace(&path, &temporary, text.as_bytes(), private).expect("replaced");
            assert_eq!(fs::read_to_string(&path).expect("there"), text);
            assert_eq!(mode_of(&path), 0o600);
            assert!(temporary.symlink_metadata().is_err(), "nothing is left");
            fs::write(&temporary, "left by a crash, and longer than what comes").expect("written");
        }
        assert_eq!(fs::read_to_string(&other).expect("there"), "a stranger's");
    }

    #[test]
    fn what_cannot_be_written_leaves_the_former_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let [path, temporary] = ["it", "it.new"].map(|name| directory.path().join(name));
        fs::write(&path, "first").expect("written");
        let refused = |_: &File| Err(ErrorKind::PermissionDenied.into());
        assert!(replace(&path, &temporary, b"second", refused).is_err());
        assert_eq!(fs::read_to_string(&path).expect("there"), "first");
        assert!(!temporary.exists());
        let nowhere = directory.path().join("none");
        let done = replace(&nowhere.join("it"), &nowhere.join("it.new"), b"", |_| Ok(()));
        assert!(done.is_err_and(|error| error.kind() == ErrorKind::NotFound));
    }

    #[test]
    fn a_file_is_made_where_nothing_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("it");
        create(&path, 0o600, b"first").expect("made");
        assert_eq!(mode_of(&path), 0o600);
        assert!(create(&path, 0o600, b"second").is_err_and(|error| error.kind() == ErrorKind::AlreadyExists));
        assert_eq!(fs::read(&path).expect("there"), b"first");
    }
}
