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

use rustix::fs::{AtFlags, Dir, Mode, OFlags, lgetxattr, openat, statat};
use seawall_core::guards::Guards;
use seawall_core::naming::Holds;
use seawall_core::stand_in;
use seawall_core::stand_in::OWN_SUFFIX;
use seawall_core::{Errno, Owner};

const S_IFMT: u32 = 0o170_000;
const S_IFDIR: u32 = 0o040_000;

/// The name under which the file called `name` in `dir` is found.
pub fn real<'n>(dir: BorrowedFd<'_>, name: &'n OsStr) -> Cow<'n, OsStr> {
    if is_guarded(dir, name) { Cow::Owned(beside(name)) } else { Cow::Borrowed(name) }
}

/// How an operation acts on names: by one system call, beside which no guard moves.
#[derive(Clone, Copy)]
pub struct Act<'l> {
    guards: Guards<'l>,
    who: Owner,
    /// How often guards had moved before the names were found. `None`: no guard takes any of them.
    since: Option<u64>,
}

impl<'l> Act<'l> {
    fn begin<'n>((guards, who): (Guards<'l>, Owner), names: impl IntoIterator<Item = &'n OsStr>) -> Self {
        let is_any_taken = names.into_iter().any(|name| stand_in::may_stand_at(name.as_bytes()));
        let moves = || guards.wait(|ns| std::thread::sleep(Duration::from_nanos(ns)));
        Self { guards, who, since: is_any_taken.then(moves) }
    }

    /// Makes that system call, unless a guard has moved.
    pub fn by<R>(self, call: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
        let Some(since) = self.since else { return call() };
        match self.guards.stand_still(self.who, since) {
            Some(_still) => call(),
            None => Err(Errno::RESTART),
        }
    }

    fn has_moved(self) -> bool {
        self.since.is_some_and(|since| self.guards.moves() != since)
    }
}

/// Calls `op` with the names under which these are found, until it has acted there, or has failed where no guard has moved.
pub fn at_real<'l, const N: usize, R>(
    log: (Guards<'l>, Owner),
    names: [(BorrowedFd<'_>, &OsStr); N],
    mut op: impl FnMut([&OsStr; N], Act<'l>) -> Result<R, Errno>,
) -> Result<R, Errno> {
    loop {
        let act = Act::begin(log, names.map(|(_, name)| name));
        let found = names.map(|(dir, name)| real(dir, name));
        let done = op(found.each_ref().map(|name| &**name), act);
        if done.is_ok() || !act.has_moved() {
            return done;
        }
    }
}

/// Calls `look` with the name under which this one is found, until no guard has moved when it is over.
pub fn look_at_real<R>(
    log: (Guards<'_>, Owner),
    (dir, name): (BorrowedFd<'_>, &OsStr),
    mut look: impl FnMut(&OsStr) -> R,
) -> R {
    loop {
        let act = Act::begin(log, [name]);
        let done = look(&real(dir, name));
        if !act.has_moved() {
            return done;
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
    use seawall_core::{Engine, pool, takeover};
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

    /// A log, and who uses it.
    fn log() -> (tempfile::TempDir, Engine, Owner) {
        let dir = tempfile::tempdir_in("/dev/shm").expect("memory");
        let path = dir.path().join("pool");
        pool::create(&path, 16 << 20, true, false).expect("a pool");
        let mut pool = pool::open(&path).expect("open");
        let engine = takeover::start(&mut pool, dir.path()).expect("a start").engine;
        let client = engine.claim_client(std::process::id(), 0).expect("a slot");
        (dir, engine, Owner::new(client, 1 << 4))
    }

    // Holds: P5
    #[test]
    fn an_operation_acts_where_the_file_is_although_a_guard_has_moved() {
        let ((_memory, engine, who), (dir, open)) = (log(), guarded());
        let path = |name: &OsStr| dir.path().join(name);
        let [text, aside, new] = ["CURRENT", "CURRENT.seawall", "new"].map(OsStr::new);
        let mut tries = 0;
        at_real((engine.guards(), who), [(open.as_fd(), text)], |[name], act| {
            tries += 1;
            if tries == 1 {
                let _moving = engine.guards().moving().expect("nobody acts");
                fs::rename(path(aside), path(text)).expect("lowered");
            }
            act.by(|| fs::rename(path(new), path(name)).map_err(|_| Errno::IO))
        })
        .expect("renamed");
        assert_eq!(tries, 2);
        assert_eq!(fs::read_to_string(path(text)).expect("read"), "new");
        assert!(!path(aside).exists());
    }

    // Holds: P5
    #[test]
    fn a_guard_that_comes_is_not_looked_at() {
        let ((_memory, engine, who), (dir, open)) = (log(), guarded());
        let path = |name: &str| dir.path().join(name);
        fs::rename(path("CURRENT"), path("text")).expect("renamed");
        fs::rename(path("CURRENT.seawall"), path("CURRENT")).expect("lowered");
        let mut looks = 0;
        let found = look_at_real((engine.guards(), who), (open.as_fd(), OsStr::new("CURRENT")), |name| {
            looks += 1;
            if looks == 1 {
                let _moving = engine.guards().moving().expect("nobody acts");
                fs::rename(path("CURRENT"), path("CURRENT.seawall")).expect("aside");
                fs::rename(path("text"), path("CURRENT")).expect("raised");
            }
            fs::read_to_string(dir.path().join(name)).map_err(|_| Errno::NOENT)
        });
        assert_eq!((found.as_deref(), looks), (Ok("old"), 2));
    }
}
