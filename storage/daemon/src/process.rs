//! Other processes, as `/proc` shows them: alive, since when, with or without the preload.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
pub use seawall_media::process::{Stat, all, is_alive, place, seen_whole, stat, tree};

/// File name of the preload, as it shows up in `/proc/PID/maps`.
pub const PRELOAD_NAME: &str = "libseawall_preload.so";

/// Start times in `/proc/PID/stat` come in these ticks: USER_HZ is 100 on every architecture we build for.
const TICK_NS: u64 = 10_000_000;

/// Nanoseconds since boot.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// True while the process that was alive at `since_ns` (CLOCK_BOOTTIME) under this id is: an id that was
/// used again belongs to a process that started later.
pub fn is_same(pid: u32, since_ns: u64) -> bool {
    let began_before = |stat: &Stat| started_ns(stat) <= since_ns.saturating_add(TICK_NS);
    stat(pid).map_or_else(|| is_alive(pid), |stat| stat.lives() && began_before(&stat))
}

/// When it started, in nanoseconds since boot, rounded down to 10 ms.
pub fn started_ns(stat: &Stat) -> u64 {
    stat.started * TICK_NS
}

/// A number that is above those of all its descriptors.
pub fn descriptors(pid: u32) -> i32 {
    let status = fs::read_to_string(place(pid).join("status")).unwrap_or_default();
    let size = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
    size.and_then(|size| size.trim().parse().ok()).unwrap_or(0)
}

/// A process by its id, which then is nobody else's.
///
/// # Errors
/// SRCH if there is none.
pub fn open(pid: u32) -> Result<OwnedFd, Errno> {
    pidfd_open(id(pid).ok_or(Errno::SRCH)?, PidfdFlags::empty())
}

/// A process's id, as the kernel takes it. `None`: it is none.
pub fn id(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// The process's short name, for messages.
pub fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).map_or_else(|_| "?".into(), |name| name.trim().into())
}

/// True if the preload is mapped into the process and at work there. Another C library's loader (musl) maps it as well,
/// as the child of a program that has it, and there it does nothing.
///
/// # Errors
/// If that may not be seen, or the process is gone.
pub fn has_preload(pid: u32) -> io::Result<bool> {
    Ok(is_at_work(&fs::read(place(pid).join("maps"))?))
}

/// The same of a process's mappings. glibc is called `libc.so.6`, until 2.33 behind a symbolic link to `libc-2.N.so`.
fn is_at_work(maps: &[u8]) -> bool {
    let has = |name: &[u8]| maps.windows(name.len()).any(|bytes| bytes == name);
    has(PRELOAD_NAME.as_bytes()) && (has(b"/libc.so.6") || has(b"/libc-2."))
}

/// A variable of the environment that the process was started with; `None` if it has none of that name.
///
/// # Errors
/// If that may not be seen, or the process is gone.
pub fn variable(pid: u32, name: &str) -> io::Result<Option<OsString>> {
    let environment = fs::read(place(pid).join("environ"))?;
    let value = |text: &[u8]| Some(text.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec());
    Ok(environment.split(|byte| *byte == 0).find_map(value).map(OsString::from_vec))
}

/// True if the process has joined another pool than the one with this run-time memory: it will not join this one. Its
/// environment may be gone by now: PostgreSQL writes its titles over it.
pub fn has_joined_another(pid: u32, memory: &Path) -> bool {
    let maps = fs::read_to_string(place(pid).join("maps")).unwrap_or_default();
    let ours = memory.file_name().unwrap_or_default().to_string_lossy();
    let is_memory = |line: &&str| line.contains("/seawall-") && line.contains(".rt");
    maps.lines().find(is_memory).is_some_and(|line| !line.contains(&*ours))
}

/// True if the process was started for another daemon than the one that listens at `socket`: the preload joins the one
/// that its environment names. False where that may not be seen.
pub fn belongs_elsewhere(pid: u32, socket: &Path) -> bool {
    let Ok(Some(named)) = variable(pid, "SEAWALL_SOCKET") else { return false };
    // A socket is made anew by every daemon: at a take-over ours is not there yet, and only its name tells.
    if named == socket.as_os_str() {
        return false;
    }
    // By its own root: it may live in a container.
    let mut path = place(pid).join("root").into_os_string();
    path.push(named);
    let Ok(ours) = fs::metadata(socket) else { return false };
    match fs::metadata(path) {
        Ok(theirs) => (theirs.dev(), theirs.ino()) != (ours.dev(), ours.ino()),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// True for a process that is this program, of whatever version.
pub fn is_seawall(pid: u32) -> bool {
    let program = |place: PathBuf| place.join("exe").read_link().ok();
    let name = |path: PathBuf| {
        let name = path.file_name().map(|name| name.as_bytes().to_owned())?;
        // Of one that was replaced by a newer version while it runs.
        Some(name.strip_suffix(b" (deleted)").map_or(name.clone(), <[u8]>::to_owned))
    };
    let theirs = program(place(pid)).and_then(name);
    theirs.is_some() && theirs == program("/proc/self".into()).and_then(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_was_not_started_later() {
        let me = std::process::id();
        assert!(is_same(me, now_ns()));
        assert!(!is_same(me, 0), "a process of the time of the boot is another one");
        assert!(!has_preload(me).expect("maps"));
        let with = |libc: &str| is_at_work(format!("r-xp /x/{PRELOAD_NAME}\nr-xp {libc}\n").as_bytes());
        assert!(with("/usr/lib/x86_64-linux-gnu/libc.so.6") && with("/lib/x86_64-linux-gnu/libc-2.31.so"));
        assert!(!with("/lib/ld-musl-x86_64.so.1") && !with("/usr/lib/x86_64-linux-musl/libc.so"));
        assert!(tree(stat(me).expect("stat").parent).contains(&me));
    }

    #[test]
    fn whom_a_process_was_started_for_is_told_by_the_socket_it_was_given() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        for name in ["ours", "theirs"] {
            fs::write(path(name), "").expect("made");
        }
        std::os::unix::fs::symlink(path("ours"), path("link")).expect("made");
        let elsewhere = |named: Option<&str>| {
            let mut command = std::process::Command::new("sleep");
            command
                .arg("60")
                .env_remove("SEAWALL_SOCKET")
                .envs(named.map(|name| ("SEAWALL_SOCKET", path(name))));
            let mut child = command.spawn().expect("spawned");
            // The new program's memory is there a moment before its environment.
            while variable(child.id(), "PATH").expect("mine").is_none() {
                std::thread::yield_now();
            }
            let answers =
                ["ours", "not there yet"].map(|socket| belongs_elsewhere(child.id(), &path(socket)));
            child.kill().expect("killed");
            child.wait().expect("reaped");
            answers
        };
        assert_eq!(elsewhere(None), [false, false]);
        assert_eq!(elsewhere(Some("ours")), [false, false]);
        assert_eq!(elsewhere(Some("link")), [false, false], "another name of the same socket");
        assert_eq!(elsewhere(Some("theirs")), [true, false]);
        assert_eq!(elsewhere(Some("gone")), [true, false], "a daemon that ended");
        assert_eq!(elsewhere(Some("not there yet")), [true, false]);
    }
}
