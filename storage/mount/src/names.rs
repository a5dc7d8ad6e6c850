//! Names while a guard is up: the mount leads to the true file, and shows the directory as the database left it.
//!
//! The rules are the preload's (`seawall_core::stand_in`): where a text stands for a file, or a directory for a
//! rollback journal, the true one is beside it with `.seawall` behind its name.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{
    AtFlags, Dir, Mode, OFlags, RenameFlags, lgetxattr, openat, renameat_with, statat, unlinkat,
};
use seawall_core::Errno;
use seawall_core::naming::Holds;
use seawall_core::stand_in;
use seawall_core::stand_in::OWN_SUFFIX;

const S_IFMT: u32 = 0o170_000;
const S_IFDIR: u32 = 0o040_000;

/// How long what the daemon does this moment is waited for.
const LOOKS: usize = 100;
const PAUSE: Duration = Duration::from_micros(100);

/// The name under which the file called `name` in `dir` is found.
pub fn real<'n>(dir: BorrowedFd<'_>, name: &'n OsStr) -> Cow<'n, OsStr> {
    if is_guarded(dir, name) { Cow::Owned(beside(name)) } else { Cow::Borrowed(name) }
}

/// What an operation does with the last of its names, if it succeeds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// It looks at what has it.
    Looks,
    /// It takes it away.
    Takes,
    /// It gives it to something, if it is free.
    Gives,
    /// It gives it to something in any case.
    Replaces,
}

/// Calls `op` with the names under which these are found. The daemon may have a guard go up, or come down, at any moment: then an
/// operation that failed, or may have met the guard, is done again, and what got a name beside a guard that is no more gets its
/// true one.
pub fn at_real<const N: usize, R>(
    names: [(BorrowedFd<'_>, &OsStr); N],
    does: Done,
    mut op: impl FnMut([&OsStr; N]) -> Result<R, Errno>,
) -> Result<R, Errno> {
    loop {
        let found = names.map(|(dir, name)| real(dir, name));
        let done = op(found.each_ref().map(|name| &**name));
        if names.map(|(dir, name)| real(dir, name)) == found {
            return done;
        }
        let (Ok(_), false) = (&done, does == Done::Looks) else { continue };
        if let (Some((dir, name)), Some(at)) = (names.last(), found.last())
            && matches!(does, Done::Gives | Done::Replaces)
            && &**at != *name
            && !has_true_name(*dir, at, name, does)
        {
            continue;
        }
        return done;
    }
}

/// What is called `at`, beside where the guard was, gets its name, unless the daemon does that just now, or has it again. False:
/// something else has the name, so nothing was done.
fn has_true_name(dir: BorrowedFd<'_>, at: &OsStr, name: &OsStr, does: Done) -> bool {
    let flags = if does == Done::Replaces { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    for _ in 0..LOOKS {
        // What is there may be the next guard's text already.
        if is_guarded(dir, name) || is_marked(dir, at) || renameat_with(dir, at, dir, name, flags).is_ok() {
            return true;
        }
        if mode(dir, name).is_some() {
            // Made by the operation, or another name of something.
            let is_spare = |stat: rustix::fs::Stat| stat.st_size == 0 || stat.st_nlink > 1;
            let spare = statat(dir, at, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(is_spare);
            return does != Done::Gives || !spare || unlinkat(dir, at, AtFlags::empty()).is_err();
        }
        std::thread::sleep(PAUSE);
    }
    true
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
    holds(&left) != Holds::More && lower(left.as_fd())
}

/// What is in a directory.
pub fn holds(dir: &OwnedFd) -> Holds {
    let Some(names) = entries(dir) else { return Holds::More };
    let is_ours = |name: &OsString| is_guarded(dir.as_fd(), name) || is_hidden(dir.as_fd(), name);
    // The daemon may have lowered one since it was listed.
    let is_gone = |name: &OsString| mode(dir.as_fd(), name).is_none();
    match names.is_empty() {
        true => Holds::Nothing,
        false if names.iter().all(|name| is_ours(name) || is_gone(name)) => Holds::Guards,
        false => Holds::More,
    }
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

    /// A guard's text at CURRENT, and the true file beside it.
    fn guarded() -> (tempfile::TempDir, fs::File) {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        fs::write(dir.path().join("CURRENT"), "a text").expect("written");
        fs::write(dir.path().join("CURRENT.seawall"), "old").expect("written");
        fs::write(dir.path().join("new"), "new").expect("written");
        let text = dir.path().join("CURRENT");
        rustix::fs::lsetxattr(text, stand_in::MARK, b"", rustix::fs::XattrFlags::empty()).expect("marked");
        let open = fs::File::open(dir.path()).expect("opened");
        (dir, open)
    }

    // Holds: P5
    #[test]
    fn what_gets_a_name_beside_a_guard_that_goes_has_its_true_one() {
        let (dir, open) = guarded();
        let path = |name: &OsStr| dir.path().join(name);
        let [text, aside] = ["CURRENT", "CURRENT.seawall"].map(OsStr::new);
        let lower = || fs::rename(path(aside), path(text)).expect("lowered");
        let name = [(open.as_fd(), text)];
        at_real(name, Done::Replaces, |[name]| {
            lower();
            fs::rename(path(OsStr::new("new")), path(name)).map_err(|_| Errno::IO)
        })
        .expect("renamed");
        assert_eq!(fs::read_to_string(path(text)).expect("read"), "new");
        assert!(!path(aside).exists());
        let (dir, open) = guarded();
        let path = |name: &OsStr| dir.path().join(name);
        let mut made = 0;
        at_real([(open.as_fd(), text)], Done::Gives, |[name]| {
            made += 1;
            if made == 1 {
                fs::rename(path(aside), path(text)).expect("lowered");
            }
            fs::File::create_new(path(name)).map(drop).map_err(|_| Errno::EXIST)
        })
        .expect_err("there is one");
        assert_eq!(made, 2);
        assert_eq!(fs::read_to_string(path(text)).expect("read"), "old");
        assert!(!path(aside).exists());
    }

    // Holds: P5
    #[test]
    fn a_guard_that_comes_is_not_looked_at() {
        let (dir, open) = guarded();
        let path = |name: &str| dir.path().join(name);
        fs::rename(path("CURRENT"), path("text")).expect("renamed");
        fs::rename(path("CURRENT.seawall"), path("CURRENT")).expect("lowered");
        let mut looks = 0;
        let found = at_real([(open.as_fd(), OsStr::new("CURRENT"))], Done::Looks, |[name]| {
            looks += 1;
            if looks == 1 {
                fs::rename(path("CURRENT"), path("CURRENT.seawall")).expect("aside");
                fs::rename(path("text"), path("CURRENT")).expect("raised");
            }
            fs::read_to_string(dir.path().join(name)).map_err(|_| Errno::NOENT)
        });
        assert_eq!((found.as_deref(), looks), (Ok("old"), 2));
    }
}
