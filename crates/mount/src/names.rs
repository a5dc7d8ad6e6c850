//! Names while a guard is up: the mount leads to the true file, and shows the directory as the database left it.
//!
//! The rules are the preload's (`seawall_core::stand_in`): where a text stands for a file, or a directory for a
//! rollback journal, the true one is beside it with `.seawall` behind its name.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, statat, unlinkat};
use seawall_core::Errno;
use seawall_core::policy::OWN_SUFFIX;
use seawall_core::stand_in;

const S_IFMT: u32 = 0o170_000;
const S_IFREG: u32 = 0o100_000;
const S_IFDIR: u32 = 0o040_000;
/// In the directory that guards an SQLite database.
const MARKER: &str = ".seawall";
const README: &str = "README";

/// The name under which the file called `name` in `dir` is found.
pub fn real<'n>(dir: BorrowedFd<'_>, name: &'n OsStr) -> Cow<'n, OsStr> {
    if is_guarded(dir, name) { Cow::Owned(beside(name)) } else { Cow::Borrowed(name) }
}

/// True for an entry that is Seawall's own: the true file beside a guard, which is shown under its own name.
pub fn is_hidden(dir: BorrowedFd<'_>, name: &OsStr) -> bool {
    let Some(base) = name.as_bytes().strip_suffix(OWN_SUFFIX) else { return false };
    is_guarded(dir, OsStr::from_bytes(base))
}

fn is_guarded(dir: BorrowedFd<'_>, name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    if bytes.ends_with(b"-journal") {
        // Not a symbolic link: what that leads to may be another database's guard.
        return mode(dir, name).is_some_and(|mode| mode & S_IFMT == S_IFDIR)
            && mode(dir, &inside(name, MARKER)).is_some();
    }
    stand_in::may_stand_at(bytes)
        && mode(dir, name).is_some_and(|mode| mode & (S_IFMT | stand_in::MARK) == S_IFREG | stand_in::MARK)
}

/// Removes the guards in the directory `name`, if nothing else is left in it: what they guarded is gone. True if
/// they are removed. Nobody may raise one meanwhile.
pub fn remove_left_guards(dir: BorrowedFd<'_>, name: &OsStr) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(left) = openat(dir, name, flags, Mode::empty()) else { return false };
    let Some(names) = entries(&left) else { return false };
    let all_ours = names.iter().all(|name| is_guarded(left.as_fd(), name));
    all_ours && names.iter().all(|name| remove_guard(left.as_fd(), name).is_ok())
}

fn entries(dir: &OwnedFd) -> Option<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir).ok()? {
        let entry = entry.ok()?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Some(names)
}

fn remove_guard(dir: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    if !name.as_bytes().ends_with(b"-journal") {
        return unlinkat(dir, name, AtFlags::empty());
    }
    // The marker goes last: half a directory is still known to be ours.
    for part in [README, MARKER] {
        match unlinkat(dir, inside(name, part), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => return Err(e),
        }
    }
    unlinkat(dir, name, AtFlags::REMOVEDIR)
}

fn mode(dir: BorrowedFd<'_>, name: &OsStr) -> Option<u32> {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| stat.st_mode)
}

fn inside(name: &OsStr, entry: &str) -> OsString {
    let mut path = name.to_owned();
    path.push("/");
    path.push(entry);
    path
}

fn beside(name: &OsStr) -> OsString {
    let mut name = name.to_owned();
    name.push(OsStr::from_bytes(OWN_SUFFIX));
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_guard_is_led_around_and_hidden() {
        let dir = tempfile::tempdir().expect("a directory");
        let open = fs::File::open(dir.path()).expect("opened");
        let real = |name: &str| super::real(open.as_fd(), OsStr::new(name)).into_owned();
        let version = dir.path().join("PG_VERSION");
        fs::write(&version, "15").expect("written");
        assert_eq!(real("PG_VERSION"), "PG_VERSION");
        fs::rename(&version, dir.path().join("PG_VERSION.seawall")).expect("renamed");
        fs::write(&version, "a text").expect("written");
        fs::set_permissions(&version, fs::Permissions::from_mode(0o1600)).expect("marked");
        assert_eq!(real("PG_VERSION"), "PG_VERSION.seawall");
        assert!(is_hidden(open.as_fd(), OsStr::new("PG_VERSION.seawall")));
        assert!(!is_hidden(open.as_fd(), OsStr::new("other.seawall")));
        fs::create_dir(dir.path().join("a.db-journal")).expect("made");
        assert_eq!(real("a.db-journal"), "a.db-journal");
        fs::write(dir.path().join("a.db-journal/.seawall"), "").expect("written");
        assert_eq!(real("a.db-journal"), "a.db-journal.seawall");
        std::os::unix::fs::symlink("a.db-journal", dir.path().join("b.db-journal")).expect("made");
        assert_eq!(real("b.db-journal"), "b.db-journal", "a link to another's guard is no guard");
    }
}
