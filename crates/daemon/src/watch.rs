//! Opens of managed files by processes without Seawall.
//!
//! Such a process may write and fsync. If the file had live records then, a later replay would roll its
//! durable data back. So the file leaves the log first, and stays out until that process has gone.
//!
//! | the daemon has | how an open is seen | what is guaranteed |
//! |---|---|---|
//! | CAP_SYS_ADMIN (root) | fanotify permission event: the open waits for the daemon's answer | the file has no live records before the open returns |
//! | less | inotify, after the fact, then a look at `/proc` | the same within some milliseconds of the open, for processes of the same user |
//!
//! The directory of a guard that steps aside is watched in the first row too: a stranger who reads it does not see the
//! guard (`guarding`). In the second row it is met.
//!
//! A file whose every write is to be logged (policy `atomic`) gets the second row in both cases: a backup that
//! reads it must not take it out of the log, and only an open that is over shows whether it is for writing.
//!
//! The limit of the second row, precisely: data that a foreign process writes *and* syncs within those
//! milliseconds, or as another user, is at risk if the machine loses power before the file has left the log.
//! Writers that were there before the file was registered are found in both rows (`foreign`), and recovery
//! refuses files that changed since the boot.
//!
//! The daemon of another user gets the first row too when root started it (`run --user`): the group is made
//! while still root and handed over as the daemon's stdin. It is handed over, not shared: a second holder
//! would keep the group, and the opens that wait for it, when the daemon dies. The [watchdog](crate::watchdog) shares it,
//! which the kernel ends with the daemon.
//!
//! While no daemon lives nobody watches; `run` starts a new one at once, which looks at every managed file.
//!
//! No deadlock: the thread that reads permission events opens no managed file and takes no lock of one;
//! foreign opens are answered by a thread of their own. If the daemon dies the kernel lets all opens pass.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::sys::fanotify::{
    EventFFlags, Fanotify, FanotifyEvent, FanotifyResponse, InitFlags, MarkFlags, MaskFlags, Response,
};
use nix::sys::inotify::{AddWatchFlags, InitFlags as InotifyFlags, Inotify, WatchDescriptor};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FileType, Stat};
use seawall_core::file::Flag;
use seawall_media::locks::lock;

use crate::asleep::Asleep;
use crate::log::Log;
use crate::state::Daemon;
use crate::{cache, guarding, guards, process, sys, warden};

type Inode = (u64, u64);

/// Time in which several opens count as one: the look at `/proc` is not cheap. And the descriptor of who opened the file
/// is there at its end: an open is reported a moment before.
pub(crate) const COALESCE: Duration = Duration::from_millis(5);
/// Pause after a look, in looks: the opens of the database's own processes are reported too.
const PAUSE: u32 = 4;

/// The kernel's side of the watch.
pub(crate) enum Watch {
    /// Opens wait for us.
    Fanotify(Fanotify),
    /// Opens are reported.
    Inotify(Inotify, Mutex<HashMap<WatchDescriptor, Inode>>),
    /// Neither is to be had.
    Blind,
}

impl Watch {
    /// The strongest watch there is. Stdin may be a group that somebody with more rights made for us.
    pub fn new() -> Self {
        let inherited = std::io::stdin().as_fd().try_clone_to_owned().ok().and_then(sys::fanotify);
        if let Some(fanotify) = inherited.or_else(|| group().ok()) {
            return Self::Fanotify(fanotify);
        }
        Inotify::init(InotifyFlags::IN_CLOEXEC | InotifyFlags::IN_NONBLOCK)
            .map_or(Self::Blind, |inotify| Self::Inotify(inotify, Mutex::default()))
    }

    /// One word for `status`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fanotify(_) => "fanotify",
            Self::Inotify(..) => "inotify",
            Self::Blind => "none",
        }
    }

    /// Watches a file.
    pub fn add(&self, file: impl AsFd, inode: Inode, log: &Log) {
        let path = proc_path(file);
        let added = match self {
            Self::Fanotify(f) => {
                f.mark(MarkFlags::FAN_MARK_ADD, MaskFlags::FAN_OPEN_PERM, AT_FDCWD, Some(&path))
            }
            Self::Inotify(i, inodes) => i.add_watch(&path, AddWatchFlags::IN_OPEN).map(|wd| {
                lock(inodes).insert(wd, inode);
            }),
            Self::Blind => Err(Errno::ENOSYS),
        };
        if let Err(e) = added {
            log.say_once("watch", format!("foreign writers cannot be watched for ({}): {e}", self.name()));
        }
    }

    /// Watches the reading of a directory, if that can wait for us: a report after the fact would be no use. Its opening
    /// is no event: databases open it to sync it.
    pub fn add_directory(&self, dir: impl AsFd, log: &Log) {
        let Self::Fanotify(f) = self else { return };
        if let Err(e) = f.mark(MarkFlags::FAN_MARK_ADD, directory_reads(), AT_FDCWD, Some(&proc_path(dir))) {
            log.say_once("watch", format!("who reads directories cannot be watched for: {e}"));
        }
    }

    /// Ends the watch of a directory.
    pub fn remove_directory(&self, dir: impl AsFd) {
        if let Self::Fanotify(f) = self {
            // Of one that was removed the kernel has done it.
            let _ = f.mark(MarkFlags::FAN_MARK_REMOVE, directory_reads(), AT_FDCWD, Some(&proc_path(dir)));
        }
    }

    /// Ends the watch of a file.
    pub fn remove(&self, file: impl AsFd, inode: Inode) {
        match self {
            // The kernel removes marks and watches of deleted files itself: errors mean "gone already".
            Self::Fanotify(f) => {
                let all = (MarkFlags::FAN_MARK_REMOVE, MaskFlags::FAN_OPEN_PERM);
                let _ = f.mark(all.0, all.1, AT_FDCWD, Some(&proc_path(&file)));
            }
            Self::Inotify(i, inodes) => {
                let mut inodes = lock(inodes);
                let found: Vec<_> =
                    inodes.iter().filter(|(_, at)| **at == inode).map(|(wd, _)| *wd).collect();
                for wd in found {
                    inodes.remove(&wd);
                    let _ = i.rm_watch(wd);
                }
            }
            Self::Blind => {}
        }
    }
}

fn directory_reads() -> MaskFlags {
    MaskFlags::FAN_ACCESS_PERM | MaskFlags::FAN_ONDIR
}

fn group() -> nix::Result<Fanotify> {
    let strong = InitFlags::FAN_CLASS_CONTENT
        | InitFlags::FAN_CLOEXEC
        | InitFlags::FAN_NONBLOCK
        | InitFlags::FAN_UNLIMITED_QUEUE
        | InitFlags::FAN_UNLIMITED_MARKS;
    let files = EventFFlags::O_RDONLY | EventFFlags::O_LARGEFILE | EventFFlags::O_CLOEXEC;
    Fanotify::init(strong, files)
}

/// A fanotify group for a daemon with fewer rights than ours, to become its stdin. `None`: we have no more
/// rights than it will have.
pub fn privileged() -> Option<OwnedFd> {
    group().ok().map(OwnedFd::from)
}

fn proc_path(file: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()).into()
}

/// Answers events until everything else has ended.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    if !matches!(daemon.watch, Watch::Blind) {
        cache::announce(daemon);
    }
    match &daemon.watch {
        Watch::Fanotify(fanotify) => permissions(daemon, fanotify),
        Watch::Inotify(inotify, inodes) => reports(daemon, inotify, inodes),
        Watch::Blind => {}
    }
}

/// Between looks whether the end has come, once it is near.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// The same before, should the event of the end be missing.
const TICK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Waits for events. False when everything else has ended.
fn is_called(daemon: &Daemon, group: impl AsFd) -> bool {
    while !daemon.lifetime.is_finished() {
        let mut fds = vec![PollFd::new(&group, PollFlags::IN)];
        let is_near = daemon.lifetime.is_ending();
        let end = daemon.lifetime.end_event().filter(|_| !is_near);
        let limit = match (is_near, &end) {
            (true, _) => Some(&LOOK),
            (false, Some(_)) => None,
            (false, None) => Some(&TICK),
        };
        fds.extend(end);
        if rustix::event::poll(&mut fds, limit).is_ok() && !fds[0].revents().is_empty() {
            return true;
        }
    }
    false
}

fn permissions(daemon: &Arc<Daemon>, fanotify: &Fanotify) {
    while is_called(daemon, fanotify) {
        let events = match fanotify.read_events() {
            Ok(events) => events,
            // The watchdog has read them.
            Err(Errno::EAGAIN) => continue,
            Err(_) => {
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        for event in events {
            if is_ours(daemon, event.pid()) {
                allow(fanotify, &event);
                continue;
            }
            let daemon = Arc::clone(daemon);
            // The event closes its descriptor, and so lets the open pass, however the thread ends.
            std::thread::spawn(move || foreign_open(&daemon, &event));
        }
    }
}

fn is_ours(daemon: &Daemon, pid: i32) -> bool {
    let Ok(pid) = u32::try_from(pid) else { return false };
    pid == std::process::id() || daemon.is_client(pid) || daemon.will_join(pid)
}

fn foreign_open(daemon: &Daemon, event: &FanotifyEvent) {
    let stat = event.fd().and_then(|fd| rustix::fs::fstat(fd).ok());
    if let Some(stat) = &stat {
        cache::opened(daemon, (stat.st_dev, stat.st_ino), event.pid().unsigned_abs());
    }
    if let Some(stat) = &stat
        && is_atomic(daemon, (stat.st_dev, stat.st_ino))
    {
        return judge_afterwards(daemon, event, (stat.st_dev, stat.st_ino));
    }
    if let Some(stat) = stat {
        make_safe(daemon, &stat, event.pid().unsigned_abs());
    }
    if let Watch::Fanotify(fanotify) = &daemon.watch {
        allow(fanotify, event);
    }
}

/// True if every write of the file is to go through the log.
fn is_atomic(daemon: &Daemon, (dev, ino): Inode) -> bool {
    wait_for_registration(daemon);
    daemon.engine.find(dev, ino).is_some_and(|file| daemon.engine.state(file).has(Flag::ATOMIC))
}

/// Nearly every foreign open of a database's data file is a backup's or a checker's, for reading: it must not
/// take the file out of the log. Whether it is a writer's shows only when it is open.
fn judge_afterwards(daemon: &Daemon, event: &FanotifyEvent, inode: Inode) {
    if let Watch::Fanotify(fanotify) = &daemon.watch {
        allow(fanotify, event);
    }
    std::thread::sleep(COALESCE);
    warden::look_for_writers(daemon, inode, &daemon.strangers());
}

/// A file is watched before it has a slot: an open in between is judged when it has one.
fn wait_for_registration(daemon: &Daemon) {
    drop(lock(&daemon.registering));
}

/// What the stranger is about to see is out of the log, and no guard in its way, if that is one that steps aside.
fn make_safe(daemon: &Daemon, stat: &Stat, pid: u32) {
    let _alone = lock(&daemon.registering);
    let inode = (stat.st_dev, stat.st_ino);
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        // Another daemon, or a command, looks for guards: it is to find them.
        let met = if process::is_seawall(pid) { BTreeSet::new() } else { daemon.guards.met_at(inode) };
        return guarding::make_way(daemon, &met, pid);
    }
    let known = daemon.engine.find(inode.0, inode.1);
    let Some(managed) = known.and_then(|file| daemon.files.get(file.slot)) else { return };
    let steps_aside = daemon.roots.get(managed.root).is_some_and(|root| guards::steps_aside(root.preset));
    match steps_aside {
        true => guarding::make_way(daemon, &BTreeSet::from([managed.reference.slot]), pid),
        false => warden::keep_out(daemon, &managed, pid),
    }
}

/// Lets the call pass that waits for the answer.
pub(crate) fn allow(fanotify: &Fanotify, event: &FanotifyEvent) {
    if let Some(fd) = event.fd() {
        // An answer nobody waits for any more (the opener was killed, or has its answer) is no error.
        let _ = fanotify.write_response(FanotifyResponse::new(fd, Response::FAN_ALLOW));
    }
}

fn reports(daemon: &Daemon, inotify: &Inotify, inodes: &Mutex<HashMap<WatchDescriptor, Inode>>) {
    let mut asleep = Asleep::default();
    while is_called(daemon, inotify) {
        std::thread::sleep(COALESCE);
        let opened = opened(inotify, inodes);
        wait_for_registration(daemon);
        let begin = Instant::now();
        let mut strangers = daemon.strangers();
        let let_off = asleep.look(strangers.iter().copied());
        strangers.retain(|pid| !let_off.contains(pid));
        for inode in opened {
            warden::look_for_writers(daemon, inode, &strangers);
        }
        std::thread::sleep(begin.elapsed() * PAUSE);
    }
}

/// What was opened until now: all of it, since who had not run lately is let off.
fn opened(inotify: &Inotify, inodes: &Mutex<HashMap<WatchDescriptor, Inode>>) -> HashSet<Inode> {
    let mut opened = HashSet::new();
    loop {
        match inotify.read_events() {
            Ok(events) => {
                let inodes = lock(inodes);
                opened.extend(events.iter().filter_map(|event| inodes.get(&event.wd)));
                // Some were not told.
                if events.iter().any(|event| event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW)) {
                    opened.extend(inodes.values());
                }
            }
            Err(Errno::EINTR) => {}
            Err(_) => return opened,
        }
    }
}
