//! Names while a guard is up: the mount leads to the true file, and shows the directory as the database left it.
//!
//! The rules are the preload's (`seawall_core::stand_in`): where a text stands for a file, or a directory for a
//! rollback journal, the true one is beside it with `.seawall` behind its name.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, statat};
use seawall_core::policy::OWN_SUFFIX;
use seawall_core::stand_in;

const S_IFMT: u32 = 0o170_000;
const S_IFREG: u32 = 0o100_000;

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
        let mut marker = name.to_owned();
        marker.push("/.seawall");
        return statat(dir, &marker, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    }
    stand_in::may_stand_at(bytes)
        && statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| stat.st_mode & (S_IFMT | stand_in::MARK) == S_IFREG | stand_in::MARK)
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
    }
}
