//! Names while a guard is up: the mount leads to the true file, and shows the directory as the database left it.
//!
//! The rules are the preload's (`seawall_core::stand_in`): where a text stands for a file, or a directory for a
//! rollback journal, the true one is beside it with `.seawall` behind its name.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, lgetxattr, openat, statat};
use seawall_core::Errno;
use seawall_core::stand_in;
use seawall_core::stand_in::OWN_SUFFIX;

const S_IFMT: u32 = 0o170_000;
const S_IFDIR: u32 = 0o040_000;

/// The name under which the file called `name` in `dir` is found.
pub fn real<'n>(dir: BorrowedFd<'_>, name: &'n OsStr) -> Cow<'n, OsStr> {
    if is_guarded(dir, name) { Cow::Owned(beside(name)) } else { Cow::Borrowed(name) }
}

/// Calls `op` with the names under which these are found, and once more if it failed and one of them leads elsewhere by
/// then: the daemon may have a guard go up, or come down, at any moment.
pub fn at_real<const N: usize, R>(
    names: [(BorrowedFd<'_>, &OsStr); N],
    mut op: impl FnMut([&OsStr; N]) -> Result<R, Errno>,
) -> Result<R, Errno> {
    loop {
        let found = names.map(|(dir, name)| real(dir, name));
        match op(found.each_ref().map(|name| &**name)) {
            Err(_) if names.map(|(dir, name)| real(dir, name)) != found => {}
            done => return done,
        }
    }
}

/// True for an entry that is Seawall's own: the true file beside a guard, which is shown under its own name, or a part of a
/// guard that is on its way up or down.
pub fn is_hidden(dir: BorrowedFd<'_>, name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    let stem = |end: &[u8]| bytes.strip_suffix(end).filter(|stem| stand_in::may_stand_at(stem));
    match stem(OWN_SUFFIX) {
        Some(base) => {
            let is_half_a_guard = || mode(dir, name).is_some_and(|mode| mode & S_IFMT == S_IFDIR);
            // What is gone the daemon has put back under its own name since it was listed.
            is_guarded(dir, OsStr::from_bytes(base))
                || stand_in::is_directory(base) && is_half_a_guard()
                || mode(dir, name).is_none()
        }
        None => stem(stand_in::TEMPORARY).is_some(),
    }
}

fn is_guarded(dir: BorrowedFd<'_>, name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    if stand_in::is_directory(bytes) {
        // Not a symbolic link: what that leads to may be another database's guard.
        return mode(dir, name).is_some_and(|mode| mode & S_IFMT == S_IFDIR)
            && mode(dir, &inside(name, stand_in::MARKER)).is_some();
    }
    stand_in::may_stand_at(bytes) && is_marked(dir, name)
}

fn is_marked(dir: BorrowedFd<'_>, name: &OsStr) -> bool {
    let path = Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name);
    lgetxattr(&path, stand_in::MARK, &mut [0_u8; 0][..]).is_ok()
}

/// True if the directory `name` has nothing in it but guards that protect nothing any more, and they were lowered:
/// `lower` has the daemon do that.
pub fn makes_way(dir: BorrowedFd<'_>, name: &OsStr, lower: impl FnOnce(BorrowedFd<'_>) -> bool) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(left) = openat(dir, name, flags, Mode::empty()) else { return false };
    let Some(names) = entries(&left) else { return false };
    let is_ours = |name: &OsString| is_guarded(left.as_fd(), name) || is_hidden(left.as_fd(), name);
    // The daemon may have lowered one since it was listed.
    let is_gone = |name: &OsString| mode(left.as_fd(), name).is_none();
    names.iter().all(|name| is_ours(name) || is_gone(name)) && lower(left.as_fd())
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

    #[test]
    fn a_guard_is_led_around_and_hidden() {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let open = fs::File::open(dir.path()).expect("opened");
        let real = |name: &str| super::real(open.as_fd(), OsStr::new(name)).into_owned();
        let current = dir.path().join("CURRENT");
        fs::write(&current, "15").expect("written");
        assert_eq!(real("CURRENT"), "CURRENT");
        fs::rename(&current, dir.path().join("CURRENT.seawall")).expect("renamed");
        fs::write(&current, "a text").expect("written");
        rustix::fs::lsetxattr(&current, stand_in::MARK, b"", rustix::fs::XattrFlags::empty())
            .expect("marked");
        assert_eq!(real("CURRENT"), "CURRENT.seawall");
        assert!(is_hidden(open.as_fd(), OsStr::new("CURRENT.seawall")));
        assert!(is_hidden(open.as_fd(), OsStr::new("CURRENT.seawall.tmp")));
        assert!(!is_hidden(open.as_fd(), OsStr::new("other.seawall")));
        fs::create_dir(dir.path().join("a.db-journal")).expect("made");
        assert_eq!(real("a.db-journal"), "a.db-journal");
        fs::write(dir.path().join("a.db-journal/.seawall"), "").expect("written");
        assert_eq!(real("a.db-journal"), "a.db-journal.seawall");
        std::os::unix::fs::symlink("a.db-journal", dir.path().join("b.db-journal")).expect("made");
        assert_eq!(real("b.db-journal"), "b.db-journal", "a link to another's guard is no guard");
    }
}
